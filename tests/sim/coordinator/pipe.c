/* pipe - one way of a connection, which keeps its order, see connection.h. */
#include "tests/sim/coordinator/connection.h"

void pipe_append(struct pipe *pipe, struct message *message, uint64_t at_ns)
{
	message->next = NULL;
	message->at_ns = at_ns > pipe->last_ns ? at_ns : pipe->last_ns;
	pipe->last_ns = message->at_ns;
	if (pipe->first)
		pipe->last->next = message;
	else
		pipe->first = message;
	pipe->last = message;
}

struct message *pipe_shift(struct pipe *pipe)
{
	struct message *message = pipe->first;

	pipe->first = message->next;
	message->next = NULL;
	return message;
}
