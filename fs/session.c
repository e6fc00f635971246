/* session - the mount, and its requests, see session.h. */
#include "fs/session.h"
#include "fs/channel.h"
#include "fs/log.h"
#include "fs/ops.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

int session_mount(struct daemon *daemon)
{
	daemon->session = fuse_session_new(&daemon->options->fuse, &OPS, sizeof(OPS), daemon);
	if (!daemon->session)
		return EXIT_USAGE; /* libfuse has named the option it does not know */
	if (fuse_session_mount(daemon->session, daemon->options->mountpoint)) {
		log_error("cannot mount on %s", daemon->options->mountpoint);
		fuse_session_destroy(daemon->session);
		daemon->session = NULL;
		return EXIT_FAILURE;
	}
	return 0;
}

void session_unmount(struct daemon *daemon)
{
	channel_close();
	fuse_session_unmount(daemon->session);
	fuse_session_destroy(daemon->session);
	daemon->session = NULL;
}

/*
 * Interrupts are answered here: libfuse would look through all requests for the one. What does not
 * wait (any more) was answered, since requests are done one after the other.
 */
void session_process(struct daemon *daemon, const struct fuse_buf *buffer, uint64_t now_ns)
{
	const struct fuse_in_header *header = buffer->mem;
	const struct fuse_interrupt_in *interrupt = (const struct fuse_interrupt_in *)(header + 1);

	if (buffer->size < sizeof(*header))
		return;
	if (header->opcode == FUSE_INTERRUPT) {
		if (buffer->size >= sizeof(*header) + sizeof(*interrupt))
			daemon_interrupt(daemon, interrupt->unique);
		return;
	}
	received.unique = header->unique;
	received.at_ns = now_ns;
	received.uid = header->uid;
	fuse_session_process_buf(daemon->session, buffer);
}

int session_greet(struct daemon *daemon)
{
	struct fuse_buf buffer = {0};
	bool greeted = false;
	int length = 0;

	while (!greeted) {
		length = fuse_session_receive_buf(daemon->session, &buffer);
		if (length == -EINTR)
			continue;
		if (length <= 0)
			break;
		greeted = ((const struct fuse_in_header *)buffer.mem)->opcode == FUSE_INIT;
		session_process(daemon, &buffer, clock_ns());
	}
	free(buffer.mem);
	if (!greeted || fuse_session_exited(daemon->session))
		return -1;
	channel_spread(daemon->session);
	return 0;
}
