/*
 * read - files that are read for tokens: token, try, stream, take/N, take/A-B.
 */
#ifndef RATEFS_FS_MOUNT_READ_H
#define RATEFS_FS_MOUNT_READ_H

#include "fs/mount/handle.h"
#include "fs/mount/pending.h"

enum { TOKEN_TEXT = 24 };

extern const struct node_kind TOKENS_FILE, TRY_FILE, STREAM_FILE;

/* A reader of token, stream or take; or an opener of slot (waiter.is_opener). */
struct reader {
	struct pending pending;
	/* Borrowed: it is open as long as this is not answered. An opener owns its handle. */
	struct handle *handle;
	uint32_t size; /* bytes that the kernel can take */
	struct waiter waiter;
};

/* One of take/N,within=D, take/A-B,within=D, or slot,within=D. */
struct timed_reader {
	struct reader reader;
	struct expiry expiry;
	int refusal; /* errno when the time is up */
};

/* Answers with the text of @tokens, from @offset on. 0, or -ENOENT: the client is gone. */
int read_reply(fuse_req_t request, uint64_t tokens, uint64_t offset, size_t size);

/* Says in last_error of @uid which bound refused @handle in the last step, if one did. */
void read_explain_bound(struct daemon *daemon, const struct handle *handle, uint32_t uid);

/* Takes @reader, which waits, out of its queue. Interrupted it may come back to its place. */
void read_leave_queue(struct daemon *daemon, struct reader *reader, int err);

/* Requests of kind PENDING_READER; read_collect() collects those of PENDING_OPENER, too. */
void read_collect(struct daemon *daemon, struct outbox *outbox);
void read_answer(struct daemon *daemon, struct pending *pending);
enum pending_end read_give_up(struct daemon *daemon, struct pending *pending, int err);
uint64_t read_since_ns(const struct daemon *daemon, const struct pending *pending);

#endif
