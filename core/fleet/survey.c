/* survey - what is known of who has what, see survey.h. */
#include "core/fleet/survey.h"
#include "core/fleet/holdings.h"
#include "core/fleet/parts.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/tile.h"
#include "core/fleet/znode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One look that is under way. */
struct survey {
	struct survey *next;
	struct holding *holding; /* held; NULL: the hosts alone */
	uint32_t pending;
	bool failed;
};

/* The tiles of a limiter, as they were seen: of the shares, and of the reserve. */
/* The times of looks; 0: none. */
struct looks {
	uint64_t seen_ns;     /* of the last one ... */
	uint64_t answered_ns; /* ... and of the last one that was answered */
};

struct sight {
	struct seen_tiles shares, reserve; /* their lists are owned */
	uint64_t cut;			   /* that they are of */
	struct looks looks;
};

struct surveys {
	struct survey *first;	 /* owned: those that are under way */
	struct seen_host *hosts; /* owned */
	struct looks looks;
	int64_t clock_ms;  /* of the coordinator, when our last transaction was executed ... */
	uint64_t clock_ns; /* ... which was about this time of the engine's */
};

bool surveys_new(struct fleet *fleet)
{
	fleet->surveys = calloc(1, sizeof(*fleet->surveys));
	return fleet->surveys;
}

static struct seen_host *find(const struct fleet *fleet, const char *hid)
{
	struct seen_host *host = fleet->surveys->hosts;

	while (host && strcmp(host->hid, hid) != 0)
		host = host->next;
	return host;
}

/* Of the tiles of @holding, or of the hosts if it is NULL. */
static struct looks *looks_at(const struct fleet *fleet, const struct holding *holding)
{
	return holding ? &holding->sight->looks : &fleet->surveys->looks;
}

/* Notes whether there is an answer: one that lacks a node, or may not be read, is one, too. */
static void note_answer(struct survey *survey, const struct request *request)
{
	survey->pending--;
	survey->failed |= request->answer == ANSWER_UNKNOWN;
}

static void end(struct fleet *fleet, struct survey *survey)
{
	struct survey **at = &fleet->surveys->first;

	if (survey->pending)
		return;
	while (*at != survey)
		at = &(*at)->next;
	*at = survey->next;
	looks_at(fleet, survey->holding)->seen_ns = fleet->now_ns;
	if (!survey->failed)
		looks_at(fleet, survey->holding)->answered_ns = fleet->now_ns;
	if (survey->holding)
		holdings_let_go(survey->holding);
	free(survey);
}

static void host_read(struct fleet *fleet, struct request *request)
{
	struct survey *survey = request->of.survey;
	struct host_record record;
	struct seen_host *host;
	struct znode znode;
	const char *hid;

	(void)znode_parse(request->path, &znode);
	hid = znode.name;
	host = find(fleet, hid);
	note_answer(survey, request);
	if (request->answer == ANSWER_OK) {
		/* Not understood, it is there all the same. */
		if (record_parse_host(request->data, &record))
			record = (struct host_record){0};
		if (!host)
			host = calloc(1, sizeof(*host));
		if (host && !*host->hid) {
			memcpy(host->hid, hid, HID_TEXT);
			host->next = fleet->surveys->hosts;
			fleet->surveys->hosts = host;
		}
		if (host) {
			host->record = record;
			host->changed_ms = request->changed_ms;
		}
		/* A successor has had no transaction acknowledged before its first. */
		if (!strcmp(hid, session_hid(fleet)) && session_acknowledged_ns(fleet)) {
			fleet->surveys->clock_ms = request->changed_ms;
			fleet->surveys->clock_ns = session_acknowledged_ns(fleet);
		}
	}
	end(fleet, survey);
}

static void ask(struct fleet *fleet, struct survey *survey, enum request_kind kind,
		const char *path, void (*done)(struct fleet *fleet, struct request *request))
{
	struct request *request = request_new(kind, path, done);

	if (!request) {
		survey->failed = true;
		return;
	}
	request->of.survey = survey;
	survey->pending++;
	request_send(fleet, request);
}

static void forget_hosts(struct fleet *fleet, const struct request *request)
{
	struct seen_host **at = &fleet->surveys->hosts;

	while (*at) {
		struct seen_host *host = *at;
		bool there = false;

		for (uint32_t i = 0; i < request->name_count && !there; i++)
			there = !strcmp(request->names[i], host->hid);
		if (there) {
			at = &host->next;
			continue;
		}
		*at = host->next;
		free(host);
	}
}

static void hosts_listed(struct fleet *fleet, struct request *request)
{
	struct survey *survey = request->of.survey;
	char path[ZNODE_TEXT];

	note_answer(survey, request);
	if (request->answer == ANSWER_OK)
		forget_hosts(fleet, request);
	for (uint32_t i = 0; i < request->name_count; i++) {
		const struct seen_host *host;

		if (!znode_is_hid(request->names[i]))
			continue;
		/* A look at tiles needs but the hosts' names. */
		host = find(fleet, request->names[i]);
		if (host && survey->holding)
			continue;
		znode_path_named(ZNODE_HOST, 0, request->names[i], path);
		ask(fleet, survey, REQUEST_GET, path, host_read);
	}
	end(fleet, survey);
}

/* Keeps what is shown of @tiles in @seen. */
static void keep_tiles(struct seen_tiles *seen, const struct tiles *tiles)
{
	struct seen_tile *list = calloc(tiles->count + 1, sizeof(*list));

	if (!list)
		return;
	for (uint32_t i = 0; i < tiles->count; i++) {
		list[i].first = tiles->list[i].first;
		list[i].last = tiles->list[i].last;
		memcpy(list[i].hid, tiles->list[i].hid, HID_TEXT);
	}
	free(seen->list);
	*seen = (struct seen_tiles){list, tiles->count};
}

static void tiles_listed(struct fleet *fleet, struct request *request)
{
	struct survey *survey = request->of.survey;
	struct holding *holding = survey->holding;
	struct sight *sight = holding->sight;
	struct znode folder;
	struct tiles tiles;
	uint32_t leaves;
	bool reserve;

	note_answer(survey, request);
	(void)znode_parse(request->path, &folder);
	reserve = folder.kind == ZNODE_RESERVES;
	leaves = reserve ? holding->settings->reserve_hosts : holding_leaves(holding->settings);
	/* An election may have taken back a cut, and its number was given again without reserve. */
	if (request->answer == ANSWER_OK && folder.cut == holding->cut && leaves &&
	    tiles_read(&tiles, request->names, request->name_count, leaves)) {
		keep_tiles(reserve ? &sight->reserve : &sight->shares, &tiles);
		sight->cut = folder.cut;
		tiles_free(&tiles);
	}
	end(fleet, survey);
}

static bool is_under_way(const struct fleet *fleet, const struct holding *holding)
{
	for (const struct survey *s = fleet->surveys->first; s; s = s->next) {
		if (s->holding == holding)
			return true;
	}
	return false;
}

void survey_begin(struct fleet *fleet, struct holding *holding)
{
	uint64_t seen_ns = looks_at(fleet, holding)->seen_ns;
	struct survey *survey;
	char path[ZNODE_TEXT];

	if (!session_is_connected(fleet) || session_state(fleet) != FLEET_READY ||
	    is_under_way(fleet, holding) ||
	    (seen_ns && fleet->now_ns - seen_ns < FLEET_SURVEY_FRESH_NS))
		return;
	survey = calloc(1, sizeof(*survey));
	if (!survey)
		return;
	survey->holding = holding;
	survey->next = fleet->surveys->first;
	fleet->surveys->first = survey;
	if (holding)
		holdings_keep(holding);
	survey->pending = 1; /* until all is asked for */
	if (holding) {
		znode_path_tile(holding->id, holding->cut, false, NULL, path);
		ask(fleet, survey, REQUEST_LIST, path, tiles_listed);
	}
	if (holding && holding->settings->reserve_hosts) {
		znode_path_tile(holding->id, holding->cut, true, NULL, path);
		ask(fleet, survey, REQUEST_LIST, path, tiles_listed);
	}
	/* After the tiles: a holder that is missing here is gone, and not on its way. */
	znode_path(ZNODE_HOSTS, 0, path);
	ask(fleet, survey, REQUEST_LIST, path, hosts_listed);
	survey->pending--;
	end(fleet, survey);
}

void surveys_forget(struct fleet *fleet)
{
	while (fleet->surveys->first) {
		fleet->surveys->first->pending = 0;
		fleet->surveys->first->failed = true;
		end(fleet, fleet->surveys->first);
	}
}

bool survey_attach(struct holding *holding)
{
	holding->sight = calloc(1, sizeof(*holding->sight));
	return holding->sight;
}

void survey_detach(struct holding *holding)
{
	if (!holding->sight)
		return;
	free(holding->sight->shares.list);
	free(holding->sight->reserve.list);
	free(holding->sight);
}

void surveys_free(struct fleet *fleet)
{
	while (fleet->surveys && fleet->surveys->hosts) {
		struct seen_host *next = fleet->surveys->hosts->next;

		free(fleet->surveys->hosts);
		fleet->surveys->hosts = next;
	}
	free(fleet->surveys);
}

bool survey_is_done(const struct fleet *fleet, const struct holding *holding, uint64_t asked_ns)
{
	uint64_t seen_ns = looks_at(fleet, holding)->seen_ns;

	if (!session_is_connected(fleet) || session_state(fleet) != FLEET_READY)
		return true;
	if (is_under_way(fleet, holding))
		return false;
	return seen_ns + FLEET_SURVEY_FRESH_NS >= asked_ns;
}

const struct seen_host *survey_hosts(const struct fleet *fleet)
{
	return fleet->surveys->hosts;
}

/* By the coordinator's clock, as far as it is known; 0 if it is not. */
static int64_t now_ms(const struct fleet *fleet)
{
	if (!fleet->surveys->clock_ms)
		return 0;
	return fleet->surveys->clock_ms +
	       (int64_t)((fleet->now_ns - fleet->surveys->clock_ns) / 1000000);
}

/* Tells whether the last look, or the one that is under way, was not answered; takes the age. */
static bool is_old(const struct fleet *fleet, const struct holding *holding, uint64_t *age_ns)
{
	const struct looks *looks = looks_at(fleet, holding);
	uint64_t since_ns = looks->answered_ns ? fleet->now_ns - looks->answered_ns : NEVER_NS;

	if (since_ns > *age_ns)
		*age_ns = since_ns;
	return looks->seen_ns != looks->answered_ns ||
	       (is_under_way(fleet, holding) && since_ns > FLEET_SURVEY_FRESH_NS);
}

bool survey_is_old(const struct fleet *fleet, const struct holding *holding, uint64_t *age_ns)
{
	bool old;

	*age_ns = 0;
	old = is_old(fleet, NULL, age_ns);
	old |= holding && is_old(fleet, holding, age_ns);
	return old || !session_is_connected(fleet) || session_state(fleet) != FLEET_READY;
}

int64_t survey_silent_s(const struct fleet *fleet, const struct seen_host *host)
{
	int64_t silent_ms = now_ms(fleet) - host->changed_ms;
	uint64_t acknowledged_ns = session_acknowledged_ns(fleet);

	/* This host knows of itself without a look. */
	if (acknowledged_ns && !strcmp(host->hid, session_hid(fleet)))
		return (int64_t)((fleet->now_ns - acknowledged_ns) / NSEC_PER_SEC);
	return host->changed_ms && silent_ms > 0 ? silent_ms / 1000 : 0;
}

const struct limiter *survey_limiter(const struct fleet *fleet, const struct host_slot *slot)
{
	const struct holding *holding = holdings_find(fleet, slot->id);

	return holding ? holding->limiter : NULL;
}

const struct seen_tiles *survey_tiles(const struct holding *holding, bool reserve)
{
	static const struct seen_tiles none;
	const struct sight *sight = holding->sight;

	if (sight->cut != holding->cut)
		return &none;
	return reserve ? &sight->reserve : &sight->shares;
}

const struct seen_tile *survey_tile(const struct holding *holding, uint32_t leaf, bool reserve)
{
	const struct seen_tiles *tiles = survey_tiles(holding, reserve);
	uint32_t low = 0, high = tiles->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (tiles->list[middle].last < leaf)
			low = middle + 1;
		else
			high = middle;
	}
	return low < tiles->count && tiles->list[low].first <= leaf ? &tiles->list[low] : NULL;
}

const struct seen_host *survey_holder(const struct fleet *fleet, const struct seen_tile *tile)
{
	return find(fleet, tile->hid);
}
