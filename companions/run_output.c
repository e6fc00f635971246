/* run_output - what a command prints, see run_output.h. */
#include "companions/run_output.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LINE_TEXT = 4096,
	PIECE = 65536,
	STREAMS = 2,
	LEFT_MS = 1000, /* a command that has ended may have left others, that have the pipes */
	LAST_PIECES = 2 * STREAMS, /* as much as was in these when it ended */
};

struct stream {
	int from, to; /* @from is -1 at its end */
	size_t used;  /* of @line, which is not ended */
	char line[LINE_TEXT];
};

int run_output_write(int file, const char *text, size_t length)
{
	while (length) {
		ssize_t written = write(file, text, length);

		if (written < 0 && errno == EAGAIN) /* as another program that has it wants */
			(void)poll(&(struct pollfd){.fd = file, .events = POLLOUT}, 1, -1);
		else if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0) {
			text += written;
			length -= (size_t)written;
		}
	}
	return 0;
}

static void end_stream(struct stream *stream)
{
	close(stream->from);
	stream->from = -1;
}

/* Tells whether the line of @stream, which begins anew, matches @words. */
static bool end_line(struct stream *stream, const regex_t *words)
{
	stream->line[stream->used] = '\0';
	stream->used = 0;
	return !regexec(words, stream->line, 0, NULL, 0);
}

/* Tells whether a line of @stream that ends in @piece matches @words. */
static bool look_through(struct stream *stream, const char *piece, size_t length,
			 const regex_t *words)
{
	for (size_t i = 0; i < length; i++) {
		if (piece[i] != '\n' && piece[i] != '\r') {
			if (piece[i] && stream->used < LINE_TEXT - 1)
				stream->line[stream->used++] = piece[i];
		} else if (end_line(stream, words)) {
			return true;
		}
	}
	return false;
}

/* Reads what there is of @stream, and passes it on. True: it matches @words, which may be NULL. */
static bool relay_piece(struct stream *stream, const regex_t *words)
{
	static char piece[PIECE];
	ssize_t got = read(stream->from, piece, sizeof(piece));
	int error;

	if (got < 0 && errno == EINTR)
		return false;
	if (got <= 0) {
		end_stream(stream);
		return words && stream->used && end_line(stream, words);
	}
	error = run_output_write(stream->to, piece, (size_t)got);
	if (error) {
		if (error != -EPIPE)
			warnx("cannot pass on what the command prints: %s", strerror(-error));
		end_stream(stream);
	}
	return words && (look_through(stream, piece, (size_t)got, words) ||
			 (error && stream->used && end_line(stream, words)));
}

bool run_output_relay(const int from[2], pid_t worker, const volatile sig_atomic_t *told_to_end,
		      const regex_t *words)
{
	static struct stream streams[STREAMS];
	struct pollfd ready[STREAMS + 1];
	int process = (int)syscall(SYS_pidfd_open, worker, 0);
	bool matches = false, has_ended = false;
	int left = LAST_PIECES;

	streams[0] = (struct stream){.from = from[0], .to = STDOUT_FILENO};
	streams[1] = (struct stream){.from = from[1], .to = STDERR_FILENO};
	while (streams[0].from >= 0 || streams[1].from >= 0) {
		for (int i = 0; i < STREAMS; i++)
			ready[i] = (struct pollfd){.fd = streams[i].from, .events = POLLIN};
		ready[STREAMS] = (struct pollfd){.fd = has_ended ? -1 : process, .events = POLLIN};
		if (has_ended && *told_to_end) {
			if (poll(ready, STREAMS, 0) <= 0 || !left--)
				break;
		} else if (poll(ready, STREAMS + 1, has_ended ? LEFT_MS : -1) <= 0) {
			continue;
		}
		has_ended = has_ended || ready[STREAMS].revents;
		for (int i = 0; i < STREAMS; i++) {
			if (ready[i].revents)
				matches |= relay_piece(&streams[i], matches ? NULL : words);
		}
	}
	for (int i = 0; i < STREAMS; i++) {
		if (streams[i].from >= 0)
			end_stream(&streams[i]);
	}
	if (process >= 0)
		close(process);
	return matches;
}
