/* call - requests as calls of the library, see call.h. */
#include "fs/zookeeper/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	int code;
	enum answer answer;
} ANSWERS[] = {
	{ZOK, ANSWER_OK},
	{ZNONODE, ANSWER_NO_NODE},
	{ZNODEEXISTS, ANSWER_EXISTS},
	{ZBADVERSION, ANSWER_BAD_VERSION},
	{ZNOTEMPTY, ANSWER_NOT_EMPTY},
	{ZNOAUTH, ANSWER_DENIED},
	{ZINVALIDACL, ANSWER_REFUSED},
	{ZBADARGUMENTS, ANSWER_REFUSED},
	{ZNOCHILDRENFOREPHEMERALS, ANSWER_REFUSED},
};

enum answer calls_answer(int code)
{
	for (size_t i = 0; i < sizeof(ANSWERS) / sizeof(ANSWERS[0]); i++) {
		if (ANSWERS[i].code == code)
			return ANSWERS[i].answer;
	}
	return ANSWER_UNKNOWN;
}

static void free_call(struct call *call)
{
	free(call->operations);
	free(call->results);
	free(call);
}

struct call *call_make(struct calls *calls, struct request *request, size_t text_size)
{
	struct call *call = malloc(sizeof(*call) + text_size);

	if (!call)
		return NULL;
	*call = (struct call){.calls = calls, .request = request, .back = calls->end};
	*calls->end = call;
	calls->end = &call->next;
	return call;
}

static void unlink_call(struct call *call)
{
	*call->back = call->next;
	if (call->next)
		call->next->back = call->back;
	else
		call->calls->end = call->back;
}

void call_answer(struct calls *calls, struct request *request, enum answer outcome)
{
	request->answer = outcome;
	calls->answered(calls, request);
}

struct request *call_end(struct call *call, int code)
{
	struct request *request;

	if (call->request && calls_answer(code) == ANSWER_UNKNOWN)
		call->calls->check(call->calls);
	request = call->request;
	call->request = NULL;
	return request;
}

void call_drop(struct call *call)
{
	unlink_call(call);
	free_call(call);
}

const char *call_relative(const struct calls *calls, const char *path)
{
	size_t length = strlen(calls->path);

	if (strncmp(path, calls->path, length) != 0)
		return NULL;
	return path[length] ? path + length : "/";
}

static void on_watch(zhandle_t *handle, int type, int state, const char *path, void *context)
{
	struct calls *calls = context;
	const char *known;

	(void)handle;
	(void)state;
	if (type == ZOO_SESSION_EVENT || !path)
		return;
	known = call_relative(calls, path);
	if (known)
		calls->changed(calls, known);
}

static enum answer take_data(struct request *request, const char *data, int length,
			     const struct Stat *stat)
{
	if (length < 0)
		length = 0; /* no data at all */
	request->zxid = (uint64_t)stat->mzxid;
	request->made_zxid = (uint64_t)stat->czxid;
	request->changed_ms = stat->mtime;
	request->version = stat->version;
	if (length > NODE_DATA_MAX)
		return ANSWER_REFUSED;
	request->data = malloc((size_t)length + 1);
	if (!request->data)
		return ANSWER_UNKNOWN;
	if (length)
		memcpy(request->data, data, (size_t)length);
	request->data[length] = '\0';
	request->length = (size_t)length;
	return ANSWER_OK;
}

static void on_data(int code, const char *data, int length, const struct Stat *stat,
		    const void *context)
{
	struct call *call = (struct call *)context;
	struct request *request = call_end(call, code);

	if (request)
		call_answer(call->calls, request,
			    code == ZOK ? take_data(request, data, length, stat)
					: calls_answer(code));
	call_drop(call);
}

static enum answer take_names(struct request *request, const struct String_vector *names)
{
	uint32_t count = (uint32_t)names->count;
	size_t size = (count + 1) * sizeof(*request->names);
	char *to;

	for (uint32_t i = 0; i < count; i++)
		size += strlen(names->data[i]) + 1;
	request->names = malloc(size);
	if (!request->names)
		return ANSWER_UNKNOWN;
	to = (char *)(request->names + count);
	for (uint32_t i = 0; i < count; i++) {
		request->names[i] = to;
		to = stpcpy(to, names->data[i]) + 1;
	}
	request->name_count = count;
	return ANSWER_OK;
}

static void on_names(int code, const struct String_vector *names, const void *context)
{
	struct call *call = (struct call *)context;
	struct request *request = call_end(call, code);

	if (request)
		call_answer(call->calls, request,
			    code == ZOK ? take_names(request, names) : calls_answer(code));
	call_drop(call);
}

bool call_takes_path(const char *path, bool sequential)
{
	size_t length;

	if (!path || *path != '/' || strlen(path) >= NODE_PATH_MAX)
		return false;
	for (const char *c = path; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == '\x7f')
			return false;
	}
	if (!path[1])
		return !sequential; /* the root */
	while (*path) {
		length = strcspn(++path, "/");
		if ((!length && !(sequential && !*path)) || (length == 1 && path[0] == '.') ||
		    (length == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += length;
	}
	return true;
}

char *call_write_path(const struct calls *calls, const char *path, char *text)
{
	/* The root of a fleet with a path is that path. */
	bool is_root = !path[1] && *calls->path;

	return text + sprintf(text, "%s%s", calls->path, is_root ? "" : path) + 1;
}

size_t call_path_size(const struct calls *calls, const char *path)
{
	return strlen(calls->path) + strlen(path) + 1;
}

static int send_get(struct calls *calls, struct request *request)
{
	struct call *call;

	if (!call_takes_path(request->path, false))
		return ZBADARGUMENTS;
	call = call_make(calls, request, call_path_size(calls, request->path));
	if (!call)
		return ZSYSTEMERROR;
	call_write_path(calls, request->path, call->text);
	return zoo_awget(calls->handle, call->text, request->watch ? on_watch : NULL, calls,
			 on_data, call);
}

static int send_list(struct calls *calls, struct request *request)
{
	struct call *call;

	if (!call_takes_path(request->path, false))
		return ZBADARGUMENTS;
	call = call_make(calls, request, call_path_size(calls, request->path));
	if (!call)
		return ZSYSTEMERROR;
	call_write_path(calls, request->path, call->text);
	return zoo_awget_children(calls->handle, call->text, request->watch ? on_watch : NULL,
				  calls, on_names, call);
}

/*
 * After an error the library may have kept a call or not: its memory is freed at the end, or when the
 * library ends it after all.
 */
static void disown(struct calls *calls, struct request *request)
{
	for (struct call *call = calls->first; call; call = call->next) {
		if (call->request == request)
			call->request = NULL;
	}
}

void calls_send(struct calls *calls, struct request *request)
{
	static int (*const senders[])(struct calls *, struct request *) = {
		[REQUEST_TRANSACTION] = call_send_transaction,
		[REQUEST_GET] = send_get,
		[REQUEST_LIST] = send_list,
	};
	int code = senders[request->kind](calls, request);

	if (code == ZOK)
		return;
	disown(calls, request);
	call_answer(calls, request, calls_answer(code));
}

void calls_give_up(struct calls *calls)
{
	for (struct call *call = calls->first; call; call = call->next) {
		struct request *request = call->request;

		call->request = NULL;
		call->given_up = true;
		if (request)
			call_answer(calls, request, ANSWER_UNKNOWN);
	}
}

void calls_init(struct calls *calls)
{
	calls->first = NULL;
	calls->end = &calls->first;
}

void calls_free(struct calls *calls)
{
	while (calls->first)
		call_drop(calls->first);
}
