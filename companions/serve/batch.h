/*
 * batch - requests for a token of the same limiter that are there at the same time: one read of
 * `take/1-K` of the mount has the tokens of all K.
 *
 * - K is the number of requests in the batch, so no token is read that was not asked for.
 * - Tokens go to the requests in the order of arrival. A request for which there was none asks
 *   alone: so the mount counts the refusal of each.
 * - A request whose client goes away leaves its batch; one that has its token already gives it back
 *   as any other whose answer cannot be sent.
 *
 * One thread uses a struct batches.
 */
#ifndef RATEFS_COMPANIONS_SERVE_BATCH_H
#define RATEFS_COMPANIONS_SERVE_BATCH_H

#include "core/base/list.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	BATCHES_MAX = 64,	 /* at a time, of which each is in the place that its hash has */
	BATCH_REQUESTS_MAX = 64, /* K; the kernel remembers the name of each */
};

struct held_files;
struct request;

struct batch {
	struct list requests; /* in the order of arrival */
	unsigned int count;
};

struct batches {
	uint64_t used; /* a bit for each that has requests */
	struct batch all[BATCHES_MAX];
};

/* Puts @request into the batch of those with the same URL. False: there is no such batch. */
bool batch_join(struct request *request);

/*
 * Puts @request, for one token at once and with the key in its URL if at all, into a batch of its
 * own. False: its place is taken by another URL.
 */
bool batch_begin(struct request *request);

/* Takes @request out of its batch, if it is in one. */
void batch_leave(struct request *request);

/* Reads tokens for all batches, and decides their requests. Returns whether there was one. */
bool batch_read_all(struct batches *batches, struct held_files *files);

#endif
