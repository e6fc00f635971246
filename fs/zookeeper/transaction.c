/* transaction - transactions as calls of the library, see call.h. */
#include "fs/zookeeper/call.h"

#include <stdlib.h>
#include <string.h>

enum {
	SEQUENCE_DIGITS = 10,
	REQUEST_BYTES_MAX = 1048575, /* default of jute.maxbuffer: a server hangs up on more */
	HEAD_BYTES = 32,	     /* of a request, at most ... */
	OPERATION_BYTES = 80,	     /* ... and of an operation, without its path and its data */
};

/* The first operation that was refused: those before it have no error, those after it this one. */
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

/* What a transaction made that was executed. */
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
		made = made ? call_relative(call->calls, made) : NULL;
		operation->made = made ? strdup(made) : NULL;
		if (!operation->made)
			return ANSWER_UNKNOWN;
	}
	return ANSWER_OK;
}

static void on_transaction(int code, const void *context)
{
	struct call *call = (struct call *)context;
	struct request *request = call_end(call, code);

	if (request && code != ZOK)
		request->failed = find_failed(call, request->operation_count);
	if (request)
		call_answer(call->calls, request,
			    code == ZOK ? take_results(call, request) : calls_answer(code));
	call_drop(call);
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

	text = call_write_path(calls, operation->path, text);
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

/* Bytes of text that the operations of @request need; 0 if they cannot be sent. */
static size_t transaction_size(const struct calls *calls, const struct request *request)
{
	size_t size = 0, sent = HEAD_BYTES;

	if (!request->operation_count || request->operation_count > OPERATIONS_MAX)
		return 0;
	for (uint32_t i = 0; i < request->operation_count; i++) {
		const struct operation *operation = &request->operations[i];
		const char *data = operation->data;

		if (!call_takes_path(operation->path, is_sequential(operation)) ||
		    (data && strlen(data) > NODE_DATA_MAX))
			return 0;
		size += 2 * call_path_size(calls, operation->path) + SEQUENCE_DIGITS;
		sent += OPERATION_BYTES + call_path_size(calls, operation->path) +
			(data ? strlen(data) : 0);
	}
	return sent <= REQUEST_BYTES_MAX ? size : 0;
}

int call_send_transaction(struct calls *calls, struct request *request)
{
	uint32_t count = request->operation_count;
	size_t size = transaction_size(calls, request);
	struct call *call;
	char *text;

	if (!size)
		return ZBADARGUMENTS;
	call = call_make(calls, request, size);
	if (!call)
		return ZSYSTEMERROR;
	call->operations = calloc(count, sizeof(*call->operations));
	call->results = calloc(count, sizeof(*call->results));
	if (!call->operations || !call->results) {
		call_drop(call);
		return ZSYSTEMERROR;
	}
	text = call->text;
	for (uint32_t i = 0; i < count; i++)
		text = write_operation(call, i, &request->operations[i], text);
	return zoo_amulti(calls->handle, (int)count, call->operations, call->results,
			  on_transaction, call);
}
