/* message - between a link and its server, see connection.h. */
#include "tests/sim/coordinator/connection.h"
#include "tests/sim/base/memory.h"

#include <stdlib.h>

struct message *message_new(enum message_kind kind)
{
	struct message *message = memory_get(sizeof(*message));

	message->kind = kind;
	return message;
}

static void free_request(struct request *request)
{
	for (uint32_t i = 0; i < request->operation_count; i++) {
		free(request->operations[i].path);
		free(request->operations[i].data);
		free(request->operations[i].made);
	}
	free(request->operations);
	free(request);
}

void message_free(struct message *message)
{
	if (message->stray)
		free_request(message->stray);
	free(message->result.data);
	free(message->result.names);
	free(message);
}
