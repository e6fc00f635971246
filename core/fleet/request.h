/* request - requests to the coordinator: made, sent, and awaited in the order of their sending. */
#ifndef RATEFS_CORE_REQUEST_H
#define RATEFS_CORE_REQUEST_H

#include "core/fleet/parts.h"

bool requests_new(struct fleet *fleet);
/* Frees the part, and what is still out: it comes back no more. */
void requests_free(struct fleet *fleet);

/*
 * Makes a request; @path: NULL for a transaction. @done hears the answer and leaves @request to its
 * caller; NULL: nothing depends on the answer. NULL without memory.
 */
struct request *request_new(enum request_kind kind, const char *path,
			    void (*done)(struct fleet *fleet, struct request *request));
void request_free(struct request *request);

/* Adds an operation to a transaction. False: there is no memory. */
bool request_add(struct request *request, enum operation_kind kind, const char *path,
		 const char *data, int32_t version, unsigned int flags);

/* Adds @text to the data of operation @at, which has some. False: there is no memory. */
bool request_append(struct request *request, uint32_t at, const char *text);

/* Leaves out the operations from the one at @count on. */
void request_cut(struct request *request, uint32_t count);

/* Sends @request, which comes back by fleet_answered(). */
void request_send(struct fleet *fleet, struct request *request);

/* Sends a transaction of this operation alone, with @done as above. False: there is no memory. */
bool request_send_one(struct fleet *fleet, enum operation_kind kind, const char *path,
		      const char *data, int32_t version,
		      void (*done)(struct fleet *fleet, struct request *request));

/* The request that is out for longest; NULL: none is. */
const struct request *request_oldest(const struct fleet *fleet);

/* Takes @request, which was answered, from those that are out. */
void request_returned(struct fleet *fleet, struct request *request);

/* The session is gone: no answer to what is out is heard. */
void requests_forget(struct fleet *fleet);

#endif
