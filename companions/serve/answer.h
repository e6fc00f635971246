/*
 * answer - answers of a sentence, and those that refuse tokens.
 */
#ifndef RATEFS_COMPANIONS_SERVE_ANSWER_H
#define RATEFS_COMPANIONS_SERVE_ANSWER_H

#include "companions/serve/worker.h"

/* Answers with @text and a newline; with an empty @text there is no body. */
enum MHD_Result answer_text(struct request *request, unsigned int status, const char *text);

/* Answers that another method is needed, one of @allow. */
enum MHD_Result answer_method(struct request *request, const char *allow);

/* Answers that a request failed by @err, an -errno, with a sentence or, if it is NULL, with the
 * reason in last_error of the mount, if there is one. */
enum MHD_Result answer_error(struct request *request, int err, const char *sentence);

/* Answers with the number of @tokens that were granted. */
enum MHD_Result answer_granted(struct request *request, uint64_t tokens);

/*
 * Answers that @url is refused, with Retry-After, RateLimit and RateLimit-Policy:
 * draft-ietf-httpapi-ratelimit-headers-10. @held as of held_take(), or NULL.
 */
enum MHD_Result answer_refused(struct request *request, const struct url *url, struct held *held);

#endif
