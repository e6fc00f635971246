/*
 * ambush - a fault that waits for a host at one point of one of its transactions, see zookeeper.h.
 */
#include "tests/sim/coordinator/connection.h"

#include <stdlib.h>
#include <string.h>

static bool touches(const struct request *request, enum operation_kind kind, const char *prefix)
{
	for (uint32_t i = 0; i < request->operation_count; i++) {
		const struct operation *operation = &request->operations[i];

		if (operation->kind == kind && !strncmp(operation->path, prefix, strlen(prefix)))
			return true;
	}
	return false;
}

/* The leaves of a tile that host @hid leases, by its path; 0: it is another's, or is none. */
static int64_t leaves_of(const char *path, const char *hid)
{
	const char *name = strrchr(path, '/') + 1, *dot = strchr(name, '.');
	long first, last;
	char *end;

	if ((strncmp(path, "/t/", 3) != 0 && strncmp(path, "/r/", 3) != 0) || !dot ||
	    strcmp(dot + 1, hid) != 0)
		return 0;
	first = strtol(name, &end, 10);
	last = *end == '-' ? strtol(end + 1, NULL, 10) : first;
	return last - first + 1;
}

int64_t ambush_gain(const struct request *request, uint32_t *tiles)
{
	static const char hosts[] = "/h/";
	const char *hid = NULL;
	int64_t gain = 0;

	*tiles = 0;
	for (uint32_t i = 0; i < request->operation_count; i++) {
		const struct operation *o = &request->operations[i];
		bool creates = o->kind == OPERATION_CREATE;
		int64_t leaves;

		if (o->kind == OPERATION_SET && !strncmp(o->path, hosts, strlen(hosts)))
			hid = o->path + strlen(hosts);
		if (!hid || (!creates && o->kind != OPERATION_DELETE))
			continue;
		leaves = leaves_of(o->path, hid);
		*tiles += creates && leaves;
		gain += creates ? leaves : -leaves;
	}
	return gain;
}

bool ambush_is(const struct request *request, enum ambush_what what)
{
	uint32_t tiles;

	if (what == AMBUSH_LIST)
		return request->kind == REQUEST_LIST;
	if (request->kind != REQUEST_TRANSACTION)
		return false;
	switch (what) {
	case AMBUSH_TAKE:
		return ambush_gain(request, &tiles) > 0;
	case AMBUSH_GIVE:
		return ambush_gain(request, &tiles) < 0;
	case AMBUSH_CHANGE:
		return touches(request, OPERATION_SET, "/g");
	case AMBUSH_CLAIM:
		return touches(request, OPERATION_CREATE, "/w/") ||
		       touches(request, OPERATION_DELETE, "/w/");
	case AMBUSH_KEY:
		return touches(request, OPERATION_CREATE, "/k/") ||
		       touches(request, OPERATION_DELETE, "/k/");
	case AMBUSH_ANY:
	case AMBUSH_LIST:
		break;
	}
	return true;
}

static bool is_of_process(enum ambush_deed deed)
{
	return deed == AMBUSH_KILL || deed == AMBUSH_PAUSE;
}

/*
 * Does the deed between steps, where it befalls the process at the doing of a server, or the link.
 */
static void spring(struct moment *moment)
{
	struct link *link = (struct link *)((char *)moment - offsetof(struct link, springs));

	if (is_of_process(link->ambush.deed)) {
		link->client->ambushed(link->client, link->ambush.deed, false);
		return;
	}
	if (link->ambush.deed == AMBUSH_ORPHAN) {
		zookeeper_orphan(link);
		return;
	}
	if (link->ambush.deed == AMBUSH_ELECT) {
		if (!link->zookeeper->electing)
			zookeeper_elect(link->zookeeper, AMBUSH_ELECTS_NS);
		return;
	}
	if (link->ambush.deed != AMBUSH_EXPIRE)
		link_cut(link, link->ambush.deed == AMBUSH_CUT_ANSWERS);
	if (link->ambush.deed == AMBUSH_LOSE && !link->zookeeper->electing) {
		zookeeper_lose(link->zookeeper, AMBUSH_LOSES);
		zookeeper_elect(link->zookeeper, AMBUSH_ELECTS_NS);
	}
	if (link->ambush.deed == AMBUSH_EXPIRE || link->ambush.deed == AMBUSH_STRIKE)
		zookeeper_expire(link);
}

void ambush_set(struct link *link, const struct ambush *ambush)
{
	link->ambush = *ambush;
	link->ambush.armed = true;
	link->springs.comes = spring;
}

void ambush_sees(struct link *link, enum ambush_point point, const struct request *request)
{
	struct ambush *ambush = &link->ambush;

	if (!ambush->armed || ambush->point != point || link->dead ||
	    !ambush_is(request, ambush->what))
		return;
	ambush->armed = false;
	if (is_of_process(ambush->deed) && point != AMBUSH_COMMITS)
		link->client->ambushed(link->client, ambush->deed, true);
	else
		zookeeper_schedule(link->zookeeper, &link->springs, link_now(link));
}
