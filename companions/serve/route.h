/*
 * route - which function answers which request, and how answers are made.
 *
 * An answer goes out by answer_…() or by MHD_queue_response() on request->connection->mhd, and the
 * function returns its result. The function is called when the body is there. A request that lasts
 * calls worker_hold() and MHD_suspend_connection(), and returns MHD_YES; after
 * MHD_resume_connection(), which any thread may call, the function is called again, with the
 * request as it was left: request->own is the route's.
 */
#ifndef RATEFS_COMPANIONS_SERVE_ROUTE_H
#define RATEFS_COMPANIONS_SERVE_ROUTE_H

#include "companions/serve/asker.h"

struct route {
	const char *allow; /* methods, as Allow has them; NULL: any, and no body */
	const char *path;  /* one that ends with a slash has all below it */
	size_t body_max;   /* bytes; 0: none */
	enum askers askers;
	enum MHD_Result (*answer)(struct request *request);
};

/* Finds the route of @uri, and what is behind its path. NULL: there is none. */
const struct route *route_find(const char *uri, const char **rest);

/* Tells whether @route answers requests of that method. */
bool route_takes(const struct route *route, const char *method);

/* The rows of the table. */
enum MHD_Result page_answer(struct request *request);
enum MHD_Result events_answer(struct request *request);
enum MHD_Result take_answer(struct request *request);
enum MHD_Result tell_feedback(struct request *request);
enum MHD_Result tell_charge(struct request *request);

#endif
