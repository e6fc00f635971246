/* call - requests as calls of the library, see call.h. */
#include "fs/zookeeper/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SEQUENCE_DIGITS = 10,
	REQUEST_BYTES_MAX = 1048575, /* default of jute.maxbuffer: a server hangs up on more */
	HEAD_BYTES = 32,	     /* of a request, at most ... */
	OPERATION_BYTES = 80,	     /* ... and of an operation, without its path and its data */
};

struct call {
	struct calls *calls;
	struct call *next,
		**back;		 /* those that the library has: where the one before points here */
	struct request *request; /* NULL: answered, or part of calls_prepare() */
	bool given_up;
	bool is_last;		  /* of calls_prepare() */
	bool has_set;		  /* TRANSACTION */
	struct Stat stat;	  /* TRANSACTION: of the first SET */
	zoo_op_t *operations;	  /* TRANSACTION: owned */
	zoo_op_result_t *results; /* TRANSACTION: owned */
	char text[];		  /* paths as the servers know them */
};

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

/* Makes a call with room for @text_size bytes of text. NULL: no memory. */
static struct call *make_call(struct calls *calls, struct request *request, size_t text_size)
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

static void answer_request(struct calls *calls, struct request *request, enum answer outcome)
{
	request->answer = outcome;
	calls->answered(calls, request);
}

/*
 * Ends @call for the library. Returns its request, if that still is to be answered. A connection
 * that was lost is noticed first, so that it is known when the request is answered.
 */
static struct request *end_call(struct call *call, int code)
{
	struct request *request;

	if (call->request && calls_answer(code) == ANSWER_UNKNOWN)
		call->calls->check(call->calls);
	request = call->request;
	call->request = NULL;
	return request;
}

static void drop_call(struct call *call)
{
	unlink_call(call);
	free_call(call);
}

/* Returns the fleet's path of the servers' @path; NULL: it is not below the fleet's. */
static const char *relative_path(const struct calls *calls, const char *path)
{
	size_t length = strlen(calls->path);

	if (strncmp(path, calls->path, length) != 0)
		return NULL;
	return path[length] ? path + length : "/";
}

static void on_watch(zhandle_t *zhandle, int type, int state, const char *path, void *context)
{
	struct calls *calls = context;
	const char *known;

	(void)zhandle;
	(void)state;
	if (type == ZOO_SESSION_EVENT || !path)
		return;
	known = relative_path(calls, path);
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
	struct request *request = end_call(call, code);

	if (request)
		answer_request(call->calls, request,
			       code == ZOK ? take_data(request, data, length, stat)
					   : calls_answer(code));
	drop_call(call);
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
	struct request *request = end_call(call, code);

	if (request)
		answer_request(call->calls, request,
			       code == ZOK ? take_names(request, names) : calls_answer(code));
	drop_call(call);
}

/*
 * Tells whether the library and the servers take @path; it may end with a slash if a number is
 * added.
 */
static bool is_path(const char *path, bool sequential)
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

/* Writes the servers' path of the znode at @path to @text; returns where the text ends. */
static char *write_path(const struct calls *calls, const char *path, char *text)
{
	/* The root of a fleet with a path is that path. */
	bool is_root = !path[1] && *calls->path;

	return text + sprintf(text, "%s%s", calls->path, is_root ? "" : path) + 1;
}

static size_t path_size(const struct calls *calls, const char *path)
{
	return strlen(calls->path) + strlen(path) + 1;
}

/*
 * Finds the first operation that was refused: those before it have no error, those after it this
 * one.
 */
static uint32_t find_failed(const struct call *call, uint32_t count)
{
	uint32_t i = 0;

	while (i < count &&
	       (call->results[i].err == ZOK || call->results[i].err == ZRUNTIMEINCONSISTENCY))
		i++;
	return i < count ? i : 0;
}

static bool is_sequential(const struct operation *operation)
{
	return operation->kind == OPERATION_CREATE && (operation->flags & NODE_SEQUENTIAL);
}

/* Takes over the results of a transaction that was executed. */
static enum answer take_results(struct call *call, struct request *request)
{
	request->zxid = (uint64_t)call->stat.mzxid;
	for (uint32_t i = 0; i < request->operation_count; i++) {
		struct operation *operation = &request->operations[i];
		const char *made = call->results[i].value;

		if (call->results[i].err != ZOK)
			return ANSWER_UNKNOWN;
		if (!is_sequential(operation))
			continue;
		made = made ? relative_path(call->calls, made) : NULL;
		operation->made = made ? strdup(made) : NULL;
		if (!operation->made)
			return ANSWER_UNKNOWN;
	}
	return ANSWER_OK;
}

static void on_transaction(int code, const void *context)
{
	struct call *call = (struct call *)context;
	struct request *request = end_call(call, code);

	if (request && code != ZOK)
		request->failed = find_failed(call, request->operation_count);
	if (request)
		answer_request(call->calls, request,
			       code == ZOK ? take_results(call, request) : calls_answer(code));
	drop_call(call);
}

static int create_flags(const struct operation *operation)
{
	return (operation->flags & NODE_EPHEMERAL ? ZOO_EPHEMERAL : 0) |
	       (operation->flags & NODE_SEQUENTIAL ? ZOO_SEQUENCE : 0);
}

/* Puts @operation, number @i, into @call, with its text to @text; where the text ends. */
static char *write_operation(struct call *call, uint32_t i, const struct operation *operation,
			     char *text)
{
	const struct calls *calls = call->calls;
	const char *data = operation->data ? operation->data : "";
	zoo_op_t *op = &call->operations[i];
	char *path = text, *made = NULL;
	int made_size = 0;

	text = write_path(calls, operation->path, text);
	switch (operation->kind) {
	case OPERATION_CHECK:
		zoo_check_op_init(op, path, operation->version);
		break;
	case OPERATION_SET:
		zoo_set_op_init(op, path, data, (int)strlen(data), operation->version,
				call->has_set ? NULL : &call->stat);
		call->has_set = true;
		break;
	case OPERATION_CREATE:
		if (is_sequential(operation)) {
			made = text;
			made_size = (int)(text - path) + SEQUENCE_DIGITS;
			text += made_size;
		}
		zoo_create_op_init(op, path, data, (int)strlen(data), calls->acl,
				   create_flags(operation), made, made_size);
		break;
	case OPERATION_DELETE:
		zoo_delete_op_init(op, path, operation->version);
		break;
	}
	return text;
}

/* Counts the bytes of text that the operations of @request need; 0: they cannot be sent. */
static size_t transaction_size(const struct calls *calls, const struct request *request)
{
	size_t size = 0, sent = HEAD_BYTES;

	if (!request->operation_count || request->operation_count > OPERATIONS_MAX)
		return 0;
	for (uint32_t i = 0; i < request->operation_count; i++) {
		const struct operation *operation = &request->operations[i];
		const char *data = operation->data;

		if (!is_path(operation->path, is_sequential(operation)) ||
		    (data && strlen(data) > NODE_DATA_MAX))
			return 0;
		size += 2 * path_size(calls, operation->path) + SEQUENCE_DIGITS;
		sent += OPERATION_BYTES + path_size(calls, operation->path) +
			(data ? strlen(data) : 0);
	}
	return sent <= REQUEST_BYTES_MAX ? size : 0;
}

static int send_transaction(struct calls *calls, struct request *request)
{
	uint32_t count = request->operation_count;
	size_t size = transaction_size(calls, request);
	struct call *call;
	char *text;

	if (!size)
		return ZBADARGUMENTS;
	call = make_call(calls, request, size);
	if (!call)
		return ZSYSTEMERROR;
	call->operations = calloc(count, sizeof(*call->operations));
	call->results = calloc(count, sizeof(*call->results));
	if (!call->operations || !call->results) {
		drop_call(call);
		return ZSYSTEMERROR;
	}
	text = call->text;
	for (uint32_t i = 0; i < count; i++)
		text = write_operation(call, i, &request->operations[i], text);
	return zoo_amulti(calls->zhandle, (int)count, call->operations, call->results,
			  on_transaction, call);
}

static int send_get(struct calls *calls, struct request *request)
{
	struct call *call;

	if (!is_path(request->path, false))
		return ZBADARGUMENTS;
	call = make_call(calls, request, path_size(calls, request->path));
	if (!call)
		return ZSYSTEMERROR;
	write_path(calls, request->path, call->text);
	return zoo_awget(calls->zhandle, call->text, request->watch ? on_watch : NULL, calls,
			 on_data, call);
}

static int send_list(struct calls *calls, struct request *request)
{
	struct call *call;

	if (!is_path(request->path, false))
		return ZBADARGUMENTS;
	call = make_call(calls, request, path_size(calls, request->path));
	if (!call)
		return ZSYSTEMERROR;
	write_path(calls, request->path, call->text);
	return zoo_awget_children(calls->zhandle, call->text, request->watch ? on_watch : NULL,
				  calls, on_names, call);
}

/*
 * Takes the request from a call that failed. The library may have kept the call or not: its memory
 * is freed at the end, or when the library ends it after all.
 */
static void disown_call(struct calls *calls, struct request *request)
{
	for (struct call *call = calls->first; call; call = call->next) {
		if (call->request == request)
			call->request = NULL;
	}
}

void calls_send(struct calls *calls, struct request *request)
{
	static int (*const senders[])(struct calls *, struct request *) = {
		[REQUEST_TRANSACTION] = send_transaction,
		[REQUEST_GET] = send_get,
		[REQUEST_LIST] = send_list,
	};
	int code = senders[request->kind](calls, request);

	if (code == ZOK)
		return;
	disown_call(calls, request);
	answer_request(calls, request, calls_answer(code));
}

static void report_prepared(struct call *call, int code)
{
	if (!call->given_up)
		call->calls->prepared(call->calls, code);
}

static void on_made(int code, const char *made, const void *context)
{
	struct call *call = (struct call *)context;

	(void)made;
	if (code == ZNODEEXISTS)
		code = ZOK;
	if (code == ZNONODE && call->calls->refused != ZOK) /* it is why */
		code = call->calls->refused;
	call->calls->refused = code;
	if (call->is_last)
		report_prepared(call, code);
	drop_call(call);
}

/* Makes every znode from the root to the path, in one go; those that are there stay. */
static int make_path(struct calls *calls)
{
	size_t size = strlen(calls->path) + 1;
	const char *end = calls->path;

	calls->refused = ZOK;
	do {
		struct call *call = make_call(calls, NULL, size);
		int code;

		if (!call)
			return ZSYSTEMERROR;
		end += 1 + strcspn(end + 1, "/");
		snprintf(call->text, size, "%.*s", (int)(end - calls->path), calls->path);
		call->is_last = !*end;
		code = zoo_acreate(calls->zhandle, call->text, "", 0, calls->acl, 0, on_made, call);
		if (code != ZOK)
			return code;
	} while (*end);
	return ZOK;
}

static void on_looked(int code, const struct Stat *stat, const void *context)
{
	struct call *call = (struct call *)context;

	(void)stat;
	if (code != ZNONODE || call->given_up)
		report_prepared(call, code);
	else if ((code = make_path(call->calls)) != ZOK)
		report_prepared(call, code);
	drop_call(call);
}

int calls_prepare(struct calls *calls)
{
	size_t size = strlen(calls->path) + 1;
	struct call *call;

	if (size == 1) {
		calls->prepared(calls, ZOK);
		return 0;
	}
	call = make_call(calls, NULL, size);
	if (!call)
		return -ENOMEM;
	memcpy(call->text, calls->path, size);
	return zoo_aexists(calls->zhandle, call->text, 0, on_looked, call) == ZOK ? 0 : -EIO;
}

void calls_give_up(struct calls *calls)
{
	for (struct call *call = calls->first; call; call = call->next) {
		struct request *request = call->request;

		call->request = NULL;
		call->given_up = true;
		if (request)
			answer_request(calls, request, ANSWER_UNKNOWN);
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
		drop_call(calls->first);
}
