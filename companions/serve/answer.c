/* answer - answers of a sentence, and those that refuse tokens, see answer.h. */
#include "companions/serve/answer.h"

#include "core/values/quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct MHD_Response *make_response(const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

	/* A token that a cache gives away is none. */
	if (response)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (response && *text)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
					      "text/plain; charset=utf-8");
	return response;
}

/* Sends @response, which may be NULL for lack of memory, and is freed. */
static enum MHD_Result send_response(const struct request *request, unsigned int status,
				     struct MHD_Response *response)
{
	enum MHD_Result result = MHD_NO;

	if (response) {
		result = MHD_queue_response(request->connection->mhd, status, response);
		MHD_destroy_response(response);
	}
	return result;
}

/* Copies @text for a line of an answer: bytes that are not printable become question marks. */
static void line_of(const char *text, char line[ERROR_TEXT])
{
	size_t length = strnlen(text, ERROR_TEXT - 2);

	for (size_t i = 0; i < length; i++)
		line[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	line[length] = '\n';
	line[length + !!length] = '\0';
	if (!length)
		line[0] = '\0';
}

enum MHD_Result answer_text(struct request *request, unsigned int status, const char *text)
{
	char line[ERROR_TEXT];

	line_of(text, line);
	return send_response(request, status, make_response(line));
}

enum MHD_Result answer_method(struct request *request, const char *allow)
{
	struct MHD_Response *response = make_response("another method is needed, see Allow\n");

	if (response)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
	return send_response(request, MHD_HTTP_METHOD_NOT_ALLOWED, response);
}

/* The table of errors; all others are the mount's, and may pass. */
static const struct {
	int err;
	unsigned int status;
	const char *why;
} ERRORS[] = {
	{-EINVAL, MHD_HTTP_BAD_REQUEST, NULL},
	{-ERANGE, MHD_HTTP_BAD_REQUEST, NULL},
	{-E2BIG, MHD_HTTP_CONTENT_TOO_LARGE, NULL},
	{-EACCES, MHD_HTTP_FORBIDDEN, "this limiter is not for the user that serves"},
	{-EPERM, MHD_HTTP_FORBIDDEN, "this limiter is not for the user that serves"},
	{-ENOENT, MHD_HTTP_NOT_FOUND, "no such limiter"},
	{-ENODEV, MHD_HTTP_NOT_FOUND, "no such limiter"},
	{-ENAMETOOLONG, MHD_HTTP_NOT_FOUND, "no such limiter"},
	{-ENOTDIR, MHD_HTTP_NOT_FOUND, "no such limiter"},
	{-EISDIR, MHD_HTTP_NOT_FOUND, "no such limiter"},
	{-EMFILE, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests wait"},
};

/* Tells why the mount refused by @err. */
static void explain(const struct held_files *files, int err, char reason[ERROR_TEXT])
{
	if ((err != -EINVAL && err != -ERANGE && err != -EBUSY) ||
	    held_text(files, "last_error", reason, ERROR_TEXT) || !*reason)
		snprintf(reason, ERROR_TEXT, "%s", strerror(-err));
}

enum MHD_Result answer_error(struct request *request, int err, const char *sentence)
{
	const struct held_files *files = &request->connection->worker->files;
	unsigned int status = MHD_HTTP_SERVICE_UNAVAILABLE;
	char reason[ERROR_TEXT];

	for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++) {
		if (ERRORS[i].err != err)
			continue;
		status = ERRORS[i].status;
		sentence = sentence ? sentence : ERRORS[i].why;
		break;
	}
	if (status == MHD_HTTP_NOT_FOUND &&
	    held_text(files, "last_error", reason, sizeof(reason))) {
		status = MHD_HTTP_SERVICE_UNAVAILABLE;
		sentence = "no tree is mounted";
	}
	if (!sentence)
		explain(files, err, reason);
	return answer_text(request, status, sentence ? sentence : reason);
}

enum MHD_Result answer_granted(struct request *request, uint64_t tokens)
{
	struct worker *worker = request->connection->worker;
	char text[HELD_TEXT];

	request->granted = tokens;
	request->granted_run = worker->runs;
	if (tokens == 1) {
		if (!worker->granted_one)
			worker->granted_one = make_response("1\n");
		return worker->granted_one ? MHD_queue_response(request->connection->mhd,
								MHD_HTTP_OK, worker->granted_one)
					   : MHD_NO;
	}
	snprintf(text, sizeof(text), "%" PRIu64, tokens);
	return answer_text(request, MHD_HTTP_OK, text);
}

/* Adds the header fields of a refusal. @policy is the one of @held, or one to be used. */
static void add_limits(struct request *request, struct MHD_Response *response,
		       const struct url *url, struct held *held)
{
	struct held_files *files = &request->connection->worker->files;
	uint64_t eta_ns = held_eta_ns(files, held, url);
	char text[POLICY_FIELD_TEXT];
	struct policy *policy = held ? held->policy : NULL;

	if (!policy) {
		policy = malloc(sizeof(*policy));
		if (!policy)
			return;
		policy_read(files, url, policy);
		if (held)
			held->policy = policy;
	}
	if (*policy->field)
		(void)MHD_add_response_header(response, "RateLimit-Policy", policy->field);
	policy_limit(policy, eta_ns, text);
	(void)MHD_add_response_header(response, "RateLimit", text);
	if (!held)
		free(policy);
	if (eta_ns == NEVER_NS)
		return;
	/* At least a second: clients that come at once are refused again. */
	eta_ns = eta_ns ? eta_ns : 1;
	snprintf(text, sizeof(text), "%" PRIu64, (eta_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC);
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, text);
}

enum MHD_Result answer_refused(struct request *request, const struct url *url, struct held *held)
{
	struct MHD_Response *response = make_response("no token now\n");

	if (response)
		add_limits(request, response, url, held);
	return send_response(request, url->refusal, response);
}
