/* memory - the state for a successor: its memory, and its contents at the start; see state.h. */
#include "fs/base/log.h"
#include "fs/state/inside.h"
#include "fs/state/parameter.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char MAGIC[8] = "ratefs\n";

/* An id that no limiter has. */
static const uint32_t NO_LIMITER = UINT32_MAX;

static uint64_t all_bytes(void)
{
	return STATE_HEADER_BYTES + 2 * STATE_LOG_BYTES +
	       (uint64_t)UNITS_MAX * (sizeof(struct unit) + sizeof(struct learning_copies)) +
	       (uint64_t)STATE_HANDLES_MAX * (sizeof(struct state_handle) + STATE_HANDLE_TEXT) +
	       (uint64_t)PARAMETERS_MAX * sizeof(struct parameter) + sizeof(struct state_fleet) +
	       (uint64_t)PARKING_PLACES_MAX * sizeof(struct parked_place) +
	       (uint64_t)UNITS_MAX * sizeof(struct waited_copy) +
	       (uint64_t)UNITS_MAX * sizeof(struct unit_copy) +
	       (uint64_t)(PARAMETERS_MAX + STATE_HANDLES_MAX) * sizeof(struct amounts) +
	       (uint64_t)UNITS_MAX * sizeof(struct told_copies) + sizeof(struct key_ledger_memory);
}

struct state *state_open(int descriptor, uint32_t servers)
{
	struct state *state = calloc(1, sizeof(*state));
	void *bytes = MAP_FAILED;

	static_assert(sizeof(struct header) <= 64 << 10, "the header has its room");
	/* Behind is what was set aside. */
	if (state && (lseek(descriptor, 0, SEEK_END) >= (off_t)all_bytes() ||
		      !ftruncate(descriptor, (off_t)all_bytes())))
		bytes = mmap(NULL, all_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	if (bytes == MAP_FAILED) {
		log_error("no memory for a successor: %s", strerror(errno));
		free(state);
		close(descriptor);
		return NULL;
	}
	/* In a core of the server the kernel would fill it all in; the password is not for it. */
	(void)madvise(bytes, all_bytes(), MADV_DONTDUMP);
	state->descriptor = descriptor;
	state->base = servers << BASE_BITS;
	state->bytes = bytes;
	state->header = bytes;
	state->logs[0] = state->bytes + STATE_HEADER_BYTES;
	state->logs[1] = state->logs[0] + STATE_LOG_BYTES;
	state->units = (struct unit *)(state->logs[1] + STATE_LOG_BYTES);
	state->learning = (struct learning_copies *)(state->units + UNITS_MAX);
	state->handles = (struct state_handle *)(state->learning + UNITS_MAX);
	state->handle_texts = (char *)(state->handles + STATE_HANDLES_MAX);
	state->parameters = (struct parameter *)(state->handle_texts +
						 (size_t)STATE_HANDLES_MAX * STATE_HANDLE_TEXT);
	state->fleet = (struct state_fleet *)(state->parameters + PARAMETERS_MAX);
	state->places = (struct parked_place *)(state->fleet + 1);
	state->waited = (struct waited_copy *)(state->places + PARKING_PLACES_MAX);
	state->unit_counts = (struct unit_copy *)(state->waited + UNITS_MAX);
	state->parameter_amounts = (struct amounts *)(state->unit_counts + UNITS_MAX);
	state->handle_amounts = state->parameter_amounts + PARAMETERS_MAX;
	state->told = (struct told_copies *)(state->handle_amounts + STATE_HANDLES_MAX);
	state->key_ledger = (struct key_ledger_memory *)(state->told + UNITS_MAX);
	return state;
}

struct state_fleet *state_fleet(struct state *state)
{
	return state->fleet;
}

struct key_ledger_memory *state_key_ledger(struct state *state)
{
	return state->key_ledger;
}

struct parameter *state_parameters(struct state *state, struct amounts **amounts, uint32_t **used)
{
	*amounts = state->parameter_amounts;
	*used = &state->header->parameter_count;
	return state->parameters;
}

struct parked_place *state_places(struct state *state, uint32_t **used)
{
	*used = &state->header->place_count;
	return state->places;
}

void state_attach(struct state *state, const struct state_server *server)
{
	assert(server->row_count <= STATE_ROWS_MAX);
	state->server = *server;
}

void state_close(struct state *state)
{
	if (!state)
		return;
	munmap(state->bytes, all_bytes());
	close(state->descriptor);
	free(state);
}

void state_sign(struct state *state)
{
	memcpy(state->header->magic, MAGIC, sizeof(MAGIC));
}

bool state_is_there(const struct state *state)
{
	const struct header *header = state->header;

	return !memcmp(header->magic, MAGIC, sizeof(MAGIC)) && header->version == STATE_VERSION;
}

/* Copies all that was ever written behind it. 0 or -errno. */
static int copy_aside(const struct state *state)
{
	off_t all = (off_t)all_bytes(), from = 0, until;
	int descriptor = state->descriptor;

	if (ftruncate(descriptor, 2 * all))
		return -errno;
	while ((from = lseek(descriptor, from, SEEK_DATA)) >= 0 && from < all) {
		until = lseek(descriptor, from, SEEK_HOLE);
		until = until < all ? until : all;
		for (ssize_t done; from < until; from += done) {
			done = pwrite(descriptor, state->bytes + from, (size_t)(until - from),
				      all + from);
			if (done <= 0)
				return done ? -errno : -EIO;
		}
	}
	return 0;
}

/* Credentials of this version stay: a server that is another user by now cannot read them again. */
int state_set_aside(struct state *state)
{
	char *kept = state->fleet->zookeeper.credentials, credentials[CREDENTIALS_MAX + 1] = "";
	int err = copy_aside(state);

	if (!err && state_is_there(state))
		memcpy(credentials, kept, CREDENTIALS_MAX);
	if (!err && fallocate(state->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			      (off_t)all_bytes()))
		err = -errno;
	if (!err && *credentials)
		strcpy(kept, credentials);
	explicit_bzero(credentials, sizeof(credentials));
	return err;
}

void state_restoring(struct state *state, enum state_part part)
{
	if (state_is_there(state))
		state->header->restoring = part;
}

enum state_part state_restored_last(const struct state *state)
{
	uint32_t part = state->header->restoring;

	if (!state_is_there(state))
		return STATE_NOTHING;
	return part < STATE_ALL ? (enum state_part)part : STATE_ALL;
}

/*
 * Keeps open files as files of a limiter that is gone: reads get ENODEV, pollers are woken. Their
 * rows stay, which say whether an open that was not answered may still be waiting.
 */
static void give_up_handles(struct state *state)
{
	for (uint32_t i = 0; i < state->header->handle_count; i++)
		state->handles[i].limiter = NO_LIMITER;
	state->header->place_count = 0;
}

/* The credentials stay, as above. */
static void give_up_levels(struct state *state)
{
	struct zookeeper_handover *zookeeper = &state->fleet->zookeeper;
	const char *units = (const char *)state->units, *end = (const char *)state->handles;

	/* With what was learnt, which follows. */
	(void)fallocate(state->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			units - state->bytes, end - units);
	(void)fallocate(state->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(const char *)state->waited - state->bytes,
			(off_t)(UNITS_MAX * sizeof(struct waited_copy)));
	(void)fallocate(state->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(const char *)state->told - state->bytes,
			(off_t)(UNITS_MAX * sizeof(struct told_copies)));
	(void)fallocate(state->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(const char *)state->key_ledger - state->bytes,
			(off_t)sizeof(struct key_ledger_memory));
	/* In this order: the journal's unit is one of those that there are. */
	state->header->journal.unit = 0;
	state->header->unit_count = 1;
	memset(&state->fleet->fleet, 0, sizeof(state->fleet->fleet));
	zookeeper->session = 0;
	memset(zookeeper->password, 0, sizeof(zookeeper->password));
}

void state_give_up(struct state *state, enum state_part part)
{
	if (part == STATE_HANDLES)
		give_up_handles(state);
	else if (part == STATE_LEVELS)
		give_up_levels(state);
}

uint32_t state_base(const struct state *state)
{
	return state->header->version ? state->header->base : state->base;
}

uint32_t state_generation(const struct state *state)
{
	return state->header->generation;
}

void state_done(struct state *state, uint64_t unique)
{
	state->header->done = unique;
}

bool state_was_done(const struct state *state, uint64_t unique)
{
	return state->header->done == unique;
}

void state_keys(struct state *state)
{
	state->header->last_key = state->server.engine->schedule.last_key;
}

struct state_handle *state_handle(struct state *state, uint32_t index)
{
	return &state->handles[index];
}

uint32_t state_handle_count(const struct state *state)
{
	return state->header->handle_count;
}

void state_handle_used(struct state *state, uint32_t index)
{
	if (index >= state->header->handle_count)
		state->header->handle_count = index + 1;
}

struct amounts *state_handle_amounts(struct state *state, uint32_t index)
{
	return &state->handle_amounts[index];
}

char *state_handle_text(struct state *state, uint32_t index)
{
	return state->handle_texts + (size_t)index * STATE_HANDLE_TEXT;
}
