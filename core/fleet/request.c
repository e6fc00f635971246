/* request - requests to the coordinator, see request.h. */
#include "core/fleet/request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct requests {
	struct request *first, *last; /* owned: those that are out, in the order of their sending */
};

bool requests_new(struct fleet *fleet)
{
	fleet->requests = calloc(1, sizeof(*fleet->requests));
	return fleet->requests;
}

void requests_free(struct fleet *fleet)
{
	while (fleet->requests && fleet->requests->first) {
		struct request *next = fleet->requests->first->next;

		request_free(fleet->requests->first);
		fleet->requests->first = next;
	}
	free(fleet->requests);
}

struct request *request_new(enum request_kind kind, const char *path,
			    void (*done)(struct fleet *fleet, struct request *request))
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->kind = kind;
	request->done = done;
	if (kind == REQUEST_TRANSACTION)
		request->operations = calloc(OPERATIONS_MAX, sizeof(*request->operations));
	else
		request->path = strdup(path);
	if (request->operations || request->path)
		return request;
	free(request);
	return NULL;
}

void request_free(struct request *request)
{
	request_cut(request, 0);
	free(request->names);
	free(request->operations);
	free(request->path);
	free(request->data);
	free(request);
}

void request_cut(struct request *request, uint32_t count)
{
	while (request->operation_count > count) {
		struct operation *last = &request->operations[--request->operation_count];

		free(last->path);
		free(last->data);
		free(last->made);
	}
}

bool request_add(struct request *request, enum operation_kind kind, const char *path,
		 const char *data, int32_t version, unsigned int flags)
{
	struct operation *operation = &request->operations[request->operation_count];

	assert(request->operation_count < OPERATIONS_MAX);
	*operation = (struct operation){.kind = kind, .version = version, .flags = flags};
	operation->path = strdup(path);
	operation->data = data ? strdup(data) : NULL;
	request->operation_count++;
	return operation->path && (!data || operation->data);
}

bool request_append(struct request *request, uint32_t at, const char *text)
{
	struct operation *operation = &request->operations[at];
	size_t length = strlen(operation->data);
	char *data = realloc(operation->data, length + strlen(text) + 1);

	if (!data)
		return false;
	strcpy(data + length, text);
	operation->data = data;
	return true;
}

void request_send(struct fleet *fleet, struct request *request)
{
	struct requests *requests = fleet->requests;

	if (request->kind == REQUEST_TRANSACTION)
		fleet->counters.transactions++;
	else if (request->kind == REQUEST_LIST)
		fleet->counters.lists++;
	else
		fleet->counters.reads++;
	request->sent_ns = fleet->clocks.holder_ns;
	request->late_ns = fleet->late_ns;
	request->next = NULL;
	if (requests->first)
		requests->last->next = request;
	else
		requests->first = request;
	requests->last = request;
	fleet_wake_at(fleet, 0);
	fleet->coordinator->send(fleet->coordinator, request);
}

bool request_send_one(struct fleet *fleet, enum operation_kind kind, const char *path,
		      const char *data, int32_t version,
		      void (*done)(struct fleet *fleet, struct request *request))
{
	struct request *request = request_new(REQUEST_TRANSACTION, NULL, done);

	if (!request)
		return false;
	if (!request_add(request, kind, path, data, version, 0)) {
		request_free(request);
		return false;
	}
	request_send(fleet, request);
	return true;
}

const struct request *request_oldest(const struct fleet *fleet)
{
	return fleet->requests->first;
}

void request_returned(struct fleet *fleet, struct request *request)
{
	struct request **at = &fleet->requests->first, *last = NULL;

	while (*at != request) {
		last = *at;
		at = &last->next;
	}
	*at = request->next;
	if (fleet->requests->last == request)
		fleet->requests->last = last;
}

void requests_forget(struct fleet *fleet)
{
	for (struct request *r = fleet->requests->first; r; r = r->next)
		r->done = NULL;
}
