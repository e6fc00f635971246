/* told - quotas that services told of, as the hosts of a fleet hear of them, see told.h. */
#include "core/fleet/told.h"
#include "core/fleet/holdings.h"
#include "core/fleet/membership.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/znode.h"
#include "core/limiter/learning.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t MS_NS = 1000000;

/* A clock may be behind another by 1 %. */
enum { SLOW_PART = 100 };

/* Of the data of /w. */
struct told_folder {
	struct told_marks marks;
	bool asking;	   /* a request is under way */
	bool known;	   /* @marks are those of ... */
	int32_t version;   /* ... this version ... */
	uint32_t seen;	   /* ... in this epoch */
	uint64_t retry_ns; /* not again before */
};

/* The data of /w/LID, as they are known. */
struct told_node {
	struct told_quotas quotas, sent; /* as they were read or written; as they are under way */
	bool voids;			 /* that some are over for a void is to be told */
	bool asking;			 /* a request is under way */
	bool known;			 /* @quotas are those of ... */
	int32_t version;		 /* ... this version; -1: none was read yet ... */
	uint64_t epoch;			 /* ... which was written in this epoch ... */
	uint32_t seen;			 /* ... and read in this one */
	uint64_t read_ns;		 /* the node was read or written then */
	uint64_t changed_ns;		 /* it was seen to change then; 0: it was not */
	uint64_t retry_ns;		 /* it is not read again before */
};

bool told_new(struct fleet *fleet)
{
	fleet->told_folder = calloc(1, sizeof(*fleet->told_folder));
	return fleet->told_folder;
}

void told_free(struct fleet *fleet)
{
	free(fleet->told_folder);
}

bool told_attach(struct holding *holding)
{
	holding->told = NULL;
	return true;
}

void told_detach(struct holding *holding)
{
	free(holding->told);
}

/* Tells whether hosts share what the service behind the limiter of @holding allows. */
static bool is_shared(const struct holding *holding)
{
	return !holding->limiter->removed && holding->id && holding_needs_leases(holding);
}

static bool is_ready(const struct fleet *fleet)
{
	return session_state(fleet) == FLEET_READY && session_is_connected(fleet) &&
	       !session_is_leaving(fleet);
}

/* The folder. */

static void folder_read(struct fleet *fleet, struct request *request)
{
	struct told_folder *folder = fleet->told_folder;

	folder->asking = false;
	folder->known = request->answer == ANSWER_OK;
	folder->retry_ns = fleet->now_ns + FLEET_TOLD_SPACING_NS;
	if (!folder->known)
		return;
	folder->version = request->version;
	folder->seen = fleet->epochs.newest;
	record_parse_told_marks(request->data, &folder->marks);
}

void told_step(struct fleet *fleet)
{
	struct told_folder *folder = fleet->told_folder;
	struct request *request;
	char path[ZNODE_TEXT];

	/* An election may take back what was told. */
	if (!is_ready(fleet) || folder->asking ||
	    (folder->known && folder->seen == fleet->epochs.newest))
		return;
	if (fleet->now_ns < folder->retry_ns) {
		fleet_wake_at(fleet, folder->retry_ns);
		return;
	}
	znode_path(ZNODE_CLAIMS_OF, 0, path);
	request = request_new(REQUEST_GET, path, folder_read);
	if (!request)
		return;
	request->watch = true;
	folder->asking = true;
	request_send(fleet, request);
}

static void folder_written(struct fleet *fleet, struct request *request)
{
	struct told_folder *folder = fleet->told_folder;

	folder->asking = false;
	if (request->answer != ANSWER_OK) {
		folder->known = false;
		folder->retry_ns = fleet->now_ns + FLEET_TOLD_SPACING_NS;
		/* Another host was first. */
		if (request->answer == ANSWER_BAD_VERSION)
			folder->retry_ns = fleet->now_ns + 1 + fleet_random(fleet) % FLEET_HERD_NS;
		return;
	}
	folder->version++;
	record_parse_told_marks(request->operations[0].data, &folder->marks);
}

/* Lets all hosts know that reports of limiter @id may be told. */
static void mark(struct fleet *fleet, uint64_t id)
{
	struct told_folder *folder = fleet->told_folder;
	struct told_marks marks = folder->marks;
	char path[ZNODE_TEXT], text[TOLD_MARKS_TEXT];

	if (!folder->known || folder->asking)
		return;
	record_mark_told(&marks, id);
	record_print_told_marks(&marks, text);
	znode_path(ZNODE_CLAIMS_OF, 0, path);
	folder->asking = request_send_one(fleet, OPERATION_SET, path, text, folder->version,
					  folder_written);
}

void told_folder_changed(struct fleet *fleet)
{
	fleet->told_folder->known = false;
	fleet->told_folder->retry_ns = 0;
}

/* The list. */

static struct told_quota *find(struct told_quotas *quotas, uint64_t id)
{
	for (uint32_t i = 0; i < quotas->count; i++) {
		if (quotas->list[i].id == id)
			return &quotas->list[i];
	}
	return NULL;
}

static void remove_at(struct told_quotas *quotas, uint32_t i)
{
	quotas->list[i] = quotas->list[--quotas->count];
}

/* Tells whether @quotas have one of @unit of no more than @tokens. */
static bool have_fewer(const struct told_quotas *quotas, const char unit[UNIT_TEXT],
		       uint64_t tokens)
{
	for (uint32_t i = 0; i < quotas->count; i++) {
		if (amount_is_of(quotas->list[i].unit, unit) && quotas->list[i].tokens <= tokens)
			return true;
	}
	return false;
}

/* Makes one of the two of @unit whose ends are closest, known as @id, where there are too many. */
static void join_closest(struct told_quotas *quotas, const char unit[UNIT_TEXT], uint64_t id)
{
	uint32_t count = 0, first = 0, second = 0;
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < quotas->count; i++) {
		const struct told_quota *a = &quotas->list[i];

		if (!amount_is_of(a->unit, unit))
			continue;
		count++;
		for (uint32_t j = i + 1; j < quotas->count; j++) {
			const struct told_quota *b = &quotas->list[j];
			uint64_t apart_ns = a->until_ns > b->until_ns ? a->until_ns - b->until_ns
								      : b->until_ns - a->until_ns;

			if (!amount_is_of(b->unit, unit) || apart_ns >= least_ns)
				continue;
			least_ns = apart_ns;
			first = i;
			second = j;
		}
	}
	if (count <= ALLOWANCES_MAX)
		return;
	if (quotas->list[second].tokens < quotas->list[first].tokens)
		quotas->list[first].tokens = quotas->list[second].tokens;
	if (quotas->list[second].until_ns > quotas->list[first].until_ns)
		quotas->list[first].until_ns = quotas->list[second].until_ns;
	quotas->list[first].id = id;
	remove_at(quotas, second);
}

static uint64_t new_id(struct fleet *fleet)
{
	uint64_t id = fleet_random(fleet);

	return id > ALLOWANCE_JOINED ? id : ALLOWANCE_JOINED + 1;
}

/*
 * Adds what @allowance says of @unit, which no other host was told, and gives it the id of what is
 * told: by that it is seen whether it was, see note_told().
 */
static void add_report(struct fleet *fleet, struct told_quotas *quotas, const char unit[UNIT_TEXT],
		       struct allowance *allowance)
{
	struct told_quota report = {
		.id = new_id(fleet), .tokens = allowance->most, .until_ns = allowance->until_ns};
	uint64_t joined = new_id(fleet);

	memcpy(report.unit, unit, UNIT_TEXT);
	allowance->id = ALLOWANCE_JOINED;
	/* Not the other way: the end of a report of another host may come sooner than it seems. */
	for (uint32_t i = quotas->count; i--;) {
		const struct told_quota *at = &quotas->list[i];

		if (amount_is_of(at->unit, unit) && at->tokens >= report.tokens &&
		    at->until_ns <= report.until_ns)
			remove_at(quotas, i);
	}
	if (quotas->count == TOLD_QUOTAS_MAX)
		return;
	quotas->list[quotas->count++] = report;
	join_closest(quotas, unit, joined);
	allowance->id = find(quotas, report.id) ? report.id : joined;
}

/* The reports of a limiter: of the unit without a name, @i 0, and of the others. NULL: no more. */
static struct allowances *allowances_at(struct learning *learning, uint32_t i, const char **unit)
{
	static const char NONE[UNIT_TEXT] = "";

	*unit = NONE;
	if (!learning || !i)
		return learning ? &learning->allowances : NULL;
	if (!learning->units || i > learning->units->count)
		return NULL;
	*unit = learning->units->of[i - 1].unit;
	return &learning->units->of[i - 1].allowances;
}

/* Tells whether there is something that no other host was told of. */
static bool has_untold(const struct holding *holding)
{
	struct allowances *of;
	const char *unit;

	for (uint32_t i = 0; (of = allowances_at(holding->limiter->learning, i, &unit)); i++) {
		if (allowances_have_untold(of))
			return true;
	}
	return false;
}

/* Reading. */

/* Has the limiter of @holding follow what was said, and tells a successor. */
static void settle(struct fleet *fleet, const struct holding *holding)
{
	limiter_settle(&fleet->engine->schedule, holding->limiter);
	if (fleet->listener && fleet->listener->reshared)
		fleet->listener->reshared(fleet->listener, holding->limiter);
}

/* Returns the id of @quota's report as the limiter of @holding has it; NULL: it has none. */
static const struct allowance *allowance_of(const struct holding *holding,
					    const struct told_quota *quota)
{
	const struct allowances *of = holding->limiter->learning
					      ? learning_allowances(holding->limiter->learning,
								    quota->unit)
					      : NULL;

	for (uint32_t i = 0; of && i < of->count; i++) {
		if (of->list[i].id == quota->id)
			return &of->list[i];
	}
	return NULL;
}

/* Tells whether other hosts are still to be told that no report of @unit holds any more. */
static bool is_voided(const struct holding *holding, const char unit[UNIT_TEXT])
{
	const struct allowances *of =
		holding->limiter->learning ? learning_allowances(holding->limiter->learning, unit)
					   : NULL;

	return of && of->voided;
}

/* Takes over @quota, which was not known. False: there is no memory. */
static bool adopt(struct fleet *fleet, struct holding *holding, struct told_quota *quota)
{
	struct limiter *limiter = holding->limiter;
	const struct allowance *own = allowance_of(holding, quota);
	uint32_t part = holding->held > holding->unproven ? holding->held - holding->unproven : 0;

	quota->until_ns = own ? own->until_ns : fleet->now_ns;
	if (own || is_voided(holding, quota->unit))
		return true;
	quota->until_ns = fleet->now_ns + (quota->rest_ms + quota->rest_ms / SLOW_PART + 1) * MS_NS;
	if (!limiter->learning)
		limiter->learning = learning_new(fleet_random(fleet));
	return limiter->learning && learning_allow(&fleet->engine->schedule, limiter, quota->unit,
						   quota->tokens, quota->until_ns, part, quota->id);
}

/* Lets be told again what was not written after all, by @found and what was known before. */
static void find_untold(struct holding *holding, struct told_quotas *found)
{
	struct allowances *of;
	const char *unit;

	for (uint32_t i = 0; (of = allowances_at(holding->limiter->learning, i, &unit)); i++) {
		for (uint32_t j = 0; j < of->count; j++) {
			struct allowance *at = &of->list[j];

			if (at->id != ALLOWANCE_JOINED && !find(found, at->id) &&
			    !find(&holding->told->quotas, at->id))
				at->id = ALLOWANCE_UNTOLD;
		}
	}
}

/*
 * Drops what was known and is not in @found any more, so that it is over; but where another report
 * may stand for it, it goes on to its own end.
 */
static void end_missing(struct holding *holding, struct told_quotas *found)
{
	struct learning *learning = holding->limiter->learning;
	const struct told_quotas *before = &holding->told->quotas;

	for (uint32_t i = 0; learning && i < before->count; i++) {
		const struct told_quota *at = &before->list[i];
		struct allowances *of = learning_allowances(learning, at->unit);

		if (!of || find(found, at->id))
			continue;
		if (have_fewer(found, at->unit, at->tokens))
			allowances_rename(of, at->id, ALLOWANCE_JOINED);
		else
			allowances_end(of, at->id);
		if (!have_fewer(found, at->unit, UINT64_MAX))
			allowances_end_told(of);
	}
}

/*
 * Notes that @quotas are in the node. An allowance that is several reports in one, or that another
 * one says, too, was told: it does not end by an id.
 */
static void note_told(struct holding *holding, struct told_quotas *quotas)
{
	struct allowances *of;
	const char *unit;

	for (uint32_t i = 0; (of = allowances_at(holding->limiter->learning, i, &unit)); i++) {
		for (uint32_t j = 0; j < of->count; j++) {
			struct allowance *at = &of->list[j];
			const struct told_quota *as = find(quotas, at->id);

			if (at->id > ALLOWANCE_JOINED &&
			    (!as || at->joined || as->tokens != at->most ||
			     as->until_ns != at->until_ns))
				at->id = ALLOWANCE_JOINED;
		}
	}
}

/* Ends all of @quotas, which are in the node, of units of which the service said that. */
static void end_voided(const struct fleet *fleet, struct holding *holding,
		       struct told_quotas *quotas)
{
	struct allowances *of;
	const char *unit;

	for (uint32_t i = 0; (of = allowances_at(holding->limiter->learning, i, &unit)); i++) {
		for (uint32_t j = 0; of->voided && quotas && j < quotas->count; j++) {
			if (!amount_is_of(quotas->list[j].unit, unit))
				continue;
			allowances_end(of, quotas->list[j].id);
			quotas->list[j].until_ns = fleet->now_ns;
			holding->told->voids = true;
		}
		of->voided = false;
	}
}

/* Tells whether the node has a report that is over. */
static bool has_ended(const struct fleet *fleet, const struct told_node *told)
{
	for (uint32_t i = 0; i < told->quotas.count; i++) {
		if (told->quotas.list[i].until_ns <= fleet->now_ns)
			return true;
	}
	return false;
}

/* Goes on from @found, the data of the node. False: there is no memory for them. */
static bool follow(struct fleet *fleet, struct holding *holding, struct told_quotas *found,
		   bool is_next)
{
	struct told_node *told = holding->told;

	/* Another history may lack what was told. */
	if (!is_next)
		told->quotas.count = 0;
	find_untold(holding, found);
	for (uint32_t i = 0; i < found->count; i++) {
		const struct told_quota *known = find(&told->quotas, found->list[i].id);

		if (known)
			found->list[i].until_ns = known->until_ns;
		else if (!adopt(fleet, holding, &found->list[i]))
			return false;
	}
	end_missing(holding, found);
	note_told(holding, found);
	end_voided(fleet, holding, found);
	told->quotas = *found;
	told->voids &= has_ended(fleet, told);
	return true;
}

static void node_read(struct fleet *fleet, struct request *request)
{
	struct znode znode;
	struct holding *holding;
	struct told_node *told;
	struct told_quotas found;
	uint64_t epoch = request->zxid >> 32;
	bool is_next;

	(void)znode_parse(request->path, &znode);
	holding = holdings_find(fleet, znode.id);
	if (!holding || !holding->told)
		return;
	told = holding->told;
	told->asking = false;
	told->retry_ns = fleet->now_ns + FLEET_TOLD_SPACING_NS;
	if (request->answer != ANSWER_OK) {
		room_unwatch_told(fleet, holding);
		if (request->answer == ANSWER_NO_NODE)
			(void)request_send_one(fleet, OPERATION_CREATE, request->path, NULL, 0,
					       NULL);
		return;
	}
	if (told->version >= 0 && told->version != request->version)
		told->changed_ns = fleet->now_ns;
	/* No election lies between two reads in one epoch, whenever the node was written before. */
	is_next = told->version >= 0 && request->version >= told->version &&
		  (epoch == told->epoch || epoch + 1 == told->seen);
	if (!record_parse_told(request->data, &found) && is_shared(holding)) {
		if (!follow(fleet, holding, &found, is_next))
			return;
		settle(fleet, holding);
	}
	if (request->watch)
		(void)room_watch_told(fleet, holding);
	told->version = request->version;
	told->epoch = epoch;
	told->seen = fleet->epochs.newest;
	told->read_ns = fleet->now_ns;
	told->known = true;
}

static void read_node(struct fleet *fleet, struct holding *holding)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path(ZNODE_CLAIMS, holding->id, path);
	request = request_new(REQUEST_GET, path, node_read);
	if (!request)
		return;
	request->watch = room_watch_told(fleet, holding);
	holding->told->asking = true;
	request_send(fleet, request);
}

/* Writing. */

static void node_written(struct fleet *fleet, struct request *request)
{
	struct znode znode;
	struct holding *holding;
	struct told_node *told;

	(void)znode_parse(request->operations[0].path, &znode);
	holding = holdings_find(fleet, znode.id);
	if (!holding || !holding->told)
		return;
	told = holding->told;
	told->asking = false;
	told->changed_ns = fleet->now_ns;
	if (request->answer != ANSWER_OK) {
		told->known = false;
		return;
	}
	told->version++;
	told->epoch = request->zxid >> 32;
	told->read_ns = fleet->now_ns;
	end_missing(holding, &told->sent);
	note_told(holding, &told->sent);
	told->quotas = told->sent;
	told->voids = false;
	end_voided(fleet, holding, &told->quotas);
	if (is_shared(holding))
		settle(fleet, holding);
}

static void write_node(struct fleet *fleet, struct holding *holding)
{
	struct told_node *told = holding->told;
	char path[ZNODE_TEXT], text[TOLD_TEXT];
	struct allowances *of;
	const char *unit;

	told->sent.count = 0;
	for (uint32_t i = 0; i < told->quotas.count; i++) {
		if (told->quotas.list[i].until_ns > fleet->now_ns)
			told->sent.list[told->sent.count++] = told->quotas.list[i];
	}
	for (uint32_t i = 0; (of = allowances_at(holding->limiter->learning, i, &unit)); i++) {
		for (uint32_t j = 0; j < of->count; j++) {
			if (of->list[j].id == ALLOWANCE_UNTOLD)
				add_report(fleet, &told->sent, unit, &of->list[j]);
		}
	}
	for (uint32_t i = 0; i < told->sent.count; i++) {
		assert(told->sent.list[i].until_ns > fleet->now_ns);
		told->sent.list[i].rest_ms =
			(told->sent.list[i].until_ns - fleet->now_ns + MS_NS - 1) / MS_NS;
	}
	record_print_told(&told->sent, text);
	znode_path(ZNODE_CLAIMS, holding->id, path);
	told->asking = request_send_one(fleet, OPERATION_SET, path, text, told->version,
					node_written);
	told->known = told->asking;
}

/*
 * Returns after how long what was told is known to all hosts that have a right: each has heard of
 * the change before a renewal that was answered later, or reads the node without a watch.
 */
static uint64_t settle_ns(const struct fleet *fleet)
{
	return fleet->constants.quarantine_ns + FLEET_TOLD_UNWATCHED_NS;
}

/* All that was told before the leaves came that are not proven is known by now. */
static void prove(const struct fleet *fleet, struct holding *holding)
{
	if (fleet->now_ns - holding->unproven_ns >= settle_ns(fleet))
		holding->unproven = 0;
}

/* All hosts know of reports that were told long ago. */
static void settle_reports(const struct fleet *fleet, const struct holding *holding)
{
	struct allowances *of;
	const char *unit;

	for (uint32_t i = 0; (of = allowances_at(holding->limiter->learning, i, &unit)); i++)
		allowances_settle(of, settle_ns(fleet));
}

/* Returns what is known of the node of @holding. NULL: there is no memory. */
static struct told_node *told_of(struct holding *holding)
{
	if (!holding->told) {
		holding->told = calloc(1, sizeof(*holding->told));
		if (holding->told)
			holding->told->version = -1;
	}
	return holding->told;
}

/* Drops the reports that are over: while nobody asks for tokens nothing else does. */
static void drop_ended(const struct fleet *fleet, const struct holding *holding)
{
	struct allowances *of;
	const char *unit;

	for (uint32_t i = 0; (of = allowances_at(holding->limiter->learning, i, &unit)); i++)
		allowances_run(of, fleet->now_ns);
}

void told_tick(struct fleet *fleet, struct holding *holding)
{
	struct told_node *told;
	bool untold;

	drop_ended(fleet, holding);
	/* Where the node is read or written next, that ends what is in it. */
	if (!is_ready(fleet) || !is_shared(holding) ||
	    (holding->told && holding->told->known && !holding->told->asking))
		end_voided(fleet, holding, holding->told ? &holding->told->quotas : NULL);
	if (!is_ready(fleet) || !fleet->told_folder->known || !is_shared(holding))
		return;
	untold = has_untold(holding) && !membership_is_alone(fleet);
	if (!record_is_marked(&fleet->told_folder->marks, holding->id)) {
		end_voided(fleet, holding, holding->told ? &holding->told->quotas : NULL);
		prove(fleet, holding);
		if (untold || (holding->told && holding->told->quotas.count))
			mark(fleet, holding->id);
		return;
	}
	told = told_of(holding);
	if (!told || told->asking)
		return;
	if (!told->known || told->seen != fleet->epochs.newest ||
	    (!room_watches_told(holding) &&
	     fleet->now_ns - told->read_ns >= FLEET_TOLD_UNWATCHED_NS)) {
		if (fleet->now_ns >= told->retry_ns)
			read_node(fleet, holding);
		return;
	}
	prove(fleet, holding);
	settle_reports(fleet, holding);
	if ((untold || has_ended(fleet, told)) &&
	    (!told->changed_ns || fleet->now_ns - told->changed_ns >= FLEET_TOLD_SPACING_NS))
		write_node(fleet, holding);
}

bool told_has_news(const struct fleet *fleet, const struct holding *holding)
{
	struct allowances *of;
	const char *unit;

	if (!is_shared(holding))
		return false;
	for (uint32_t i = 0; (of = allowances_at(holding->limiter->learning, i, &unit)); i++) {
		if (of->voided || (!membership_is_alone(fleet) && allowances_have_untold(of)))
			return true;
	}
	return holding->told && holding->told->voids;
}

void told_changed(struct fleet *fleet, uint64_t id)
{
	struct holding *holding = holdings_find(fleet, id);

	if (!holding || !holding->told)
		return;
	room_unwatch_told(fleet, holding);
	holding->told->known = false;
	holding->told->retry_ns = 0;
	if (is_ready(fleet) && holdings_is_active(holding) && !holding->told->asking &&
	    is_shared(holding))
		read_node(fleet, holding);
}

void told_forget(struct fleet *fleet, struct holding *holding)
{
	room_unwatch_told(fleet, holding);
	if (!holding->told)
		return;
	/* The node may not have the text that was being written. */
	find_untold(holding, &holding->told->quotas);
	holding->told->asking = false;
	holding->told->known = false;
	holding->told->retry_ns = 0;
}

void told_forget_folder(struct fleet *fleet)
{
	fleet->told_folder->asking = false;
	fleet->told_folder->known = false;
	fleet->told_folder->retry_ns = 0;
}
