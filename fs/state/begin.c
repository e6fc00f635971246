/* begin - the state as a server begins it or finds it, see state.h. */
#include "fs/state/inside.h"

bool state_is_strange(const struct state *state)
{
	const struct header *header = state->header;

	/* The version is there before the kernel is told of anything. */
	if (!header->version)
		return header->handle_count || header->parameter_count || header->place_count;
	return !(state_is_there(state) && state_is_sound(state));
}

int state_begin(struct state *state)
{
	const struct engine *engine = state->server.engine;
	struct header *header = state->header;
	int err;

	state->kept = true;
	state_sign(state);
	header->began_s = state->server.began->tv_sec;
	header->engine_began_ns = engine->began_ns;
	header->unit_count = 1;
	header->base = state->base;
	state->units_until = FIRST_UNITS;
	state_number_rows(state);
	err = state_rewrite(state);
	state_write_levels(state, engine->tree.root);
	header->last_id = engine->tree.last_id;
	state_keys(state);
	if (!err)
		header->version = STATE_VERSION;
	return err;
}

int state_continue(struct state *state)
{
	state->kept = true;
	return state_rewrite(state);
}
