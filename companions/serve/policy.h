/*
 * policy - what the header fields of a refusal say of a limiter.
 *
 * draft-ietf-httpapi-ratelimit-headers-10: RateLimit-Policy has the quota and its window of each
 * policy; RateLimit what is left of one and in how many seconds there is more.
 */
#ifndef RATEFS_COMPANIONS_SERVE_POLICY_H
#define RATEFS_COMPANIONS_SERVE_POLICY_H

#include "companions/serve/url.h"

enum {
	POLICY_NAME_TEXT = 400,	  /* room for the name of a policy; a longer path is cut */
	POLICY_FIELD_TEXT = 1024, /* room for a header field */
};

struct held_files;

struct policy {
	char name[POLICY_NAME_TEXT];   /* of the one that a refusal names */
	char field[POLICY_FIELD_TEXT]; /* RateLimit-Policy; "" where nothing has a rate */
};

/* Reads the rates of @url's limiter and key; those that cannot be read are left out. */
void policy_read(const struct held_files *files, const struct url *url, struct policy *policy);

/* Writes RateLimit: nothing is left for @eta_ns, NEVER_NS: for a time that is not known. */
void policy_limit(const struct policy *policy, uint64_t eta_ns, char field[POLICY_FIELD_TEXT]);

#endif
