/* survey - what is known of who has what, see survey.h. */
#include "core/fleet/inside.h"
#include "core/fleet/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was read so lately is not read again. */
static const uint64_t FRESH_NS = NSEC_PER_SEC / 5;

/* One look that is under way. */
struct survey {
	struct survey *next;
	struct holding *holding; /* held; NULL: the hosts alone */
	uint32_t pending;
	bool failed;
};

static struct seen_host *find(const struct fleet *fleet, const char *hid)
{
	struct seen_host *host = fleet->seen_hosts;

	while (host && strcmp(host->hid, hid) != 0)
		host = host->next;
	return host;
}

static void end(struct fleet *fleet, struct survey *survey)
{
	struct survey **at = &fleet->surveys;

	if (survey->pending)
		return;
	while (*at != survey)
		at = &(*at)->next;
	*at = survey->next;
	if (survey->holding)
		survey->holding->seen_ns = fleet->now_ns;
	else
		fleet->hosts_seen_ns = fleet->now_ns;
	if (survey->holding)
		holding_let_go(survey->holding);
	free(survey);
}

static void host_read(void *pointer, struct request *request)
{
	struct fleet *fleet = pointer;
	struct survey *survey = request->purpose;
	const char *hid = strrchr(request->path, '/') + 1;
	struct seen_host *host = find(fleet, hid);
	struct host_record record;

	survey->pending--;
	if (request->answer == ANSWER_OK && !host_record_parse(request->data, &record)) {
		if (!host)
			host = calloc(1, sizeof(*host));
		if (host && !*host->hid) {
			memcpy(host->hid, hid, HID_TEXT);
			host->next = fleet->seen_hosts;
			fleet->seen_hosts = host;
		}
		if (host) {
			host->record = record;
			host->changed_ms = request->changed_ms;
		}
		if (!strcmp(hid, fleet->hid)) {
			fleet->clock_ms = request->changed_ms;
			fleet->clock_ns = fleet->last_ack_ns;
		}
	}
	end(fleet, survey);
}

static void ask(struct fleet *fleet, struct survey *survey, enum request_kind kind,
		const char *path, void (*done)(void *fleet, struct request *request))
{
	struct request *request = request_new(kind, path, survey, done);

	if (!request)
		return;
	survey->pending++;
	fleet_send(fleet, request);
}

static bool is_hid(const char *name)
{
	return strlen(name) == HID_TEXT - 1 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz234567") == HID_TEXT - 1;
}

static void forget_hosts(struct fleet *fleet, const struct request *request)
{
	struct seen_host **at = &fleet->seen_hosts;

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

static void hosts_listed(void *pointer, struct request *request)
{
	struct fleet *fleet = pointer;
	struct survey *survey = request->purpose;
	char path[PATH_ROOM];

	survey->pending--;
	if (request->answer == ANSWER_OK)
		forget_hosts(fleet, request);
	for (uint32_t i = 0; i < request->name_count; i++) {
		const struct seen_host *host;

		if (!is_hid(request->names[i]))
			continue;
		/* Who looks at partitions needs but the names. */
		host = find(fleet, request->names[i]);
		if (host && survey->holding)
			continue;
		snprintf(path, sizeof(path), "/h/%s", request->names[i]);
		ask(fleet, survey, REQUEST_GET, path, host_read);
	}
	end(fleet, survey);
}

static void lease_read(void *pointer, struct request *request)
{
	struct fleet *fleet = pointer;
	struct survey *survey = request->purpose;
	struct holding *holding = survey->holding;
	const char *name = strrchr(request->path, '/') + 1;
	uint32_t count = settings_partition_count(&holding->settings), index;

	survey->pending--;
	index = (uint32_t)strtoul(name + (*name == 'r'), NULL, 10) + (*name == 'r' ? count : 0);
	if (request->answer == ANSWER_OK && index < holding->seen_count)
		holding->seen[index].leased = true;
	if (request->answer == ANSWER_OK && index < holding->seen_count && is_hid(request->data))
		memcpy(holding->seen[index].hid, request->data, HID_TEXT);
	end(fleet, survey);
}

static void leases_listed(void *pointer, struct request *request)
{
	struct fleet *fleet = pointer;
	struct survey *survey = request->purpose;
	struct holding *holding = survey->holding;
	uint32_t count = settings_partition_count(&holding->settings) +
			 holding->settings.reserve_hosts;
	struct seen_lease *seen;
	char path[PATH_ROOM];

	survey->pending--;
	seen = request->answer == ANSWER_OK ? calloc(count, sizeof(*seen)) : NULL;
	if (seen) {
		free(holding->seen);
		holding->seen = seen;
		holding->seen_count = count;
	}
	for (uint32_t i = 0; i < request->name_count && seen; i++) {
		const char *name = request->names[i];

		if (strlen(name) > 5 || strspn(name, "r0123456789") != strlen(name))
			continue;
		snprintf(path, sizeof(path), "/l/%llu/%.5s", (unsigned long long)holding->id, name);
		ask(fleet, survey, REQUEST_GET, path, lease_read);
	}
	end(fleet, survey);
}

static bool is_under_way(const struct fleet *fleet, const struct holding *holding)
{
	for (const struct survey *s = fleet->surveys; s; s = s->next) {
		if (s->holding == holding)
			return true;
	}
	return false;
}

void survey_begin(struct fleet *fleet, struct holding *holding)
{
	uint64_t seen_ns = holding ? holding->seen_ns : fleet->hosts_seen_ns;
	struct survey *survey;
	char path[PATH_ROOM];

	if (!fleet->connected || fleet->state != FLEET_READY || is_under_way(fleet, holding) ||
	    (seen_ns && fleet->now_ns - seen_ns < FRESH_NS))
		return;
	survey = calloc(1, sizeof(*survey));
	if (!survey)
		return;
	survey->holding = holding;
	survey->next = fleet->surveys;
	fleet->surveys = survey;
	if (holding)
		holding_keep(holding);
	survey->pending = 1; /* until all is asked for */
	ask(fleet, survey, REQUEST_LIST, "/h", hosts_listed);
	if (holding) {
		snprintf(path, sizeof(path), "/l/%llu", (unsigned long long)holding->id);
		ask(fleet, survey, REQUEST_LIST, path, leases_listed);
	}
	survey->pending--;
	end(fleet, survey);
}

/* The session is over, and no answer comes any more. */
void survey_forget(struct fleet *fleet)
{
	while (fleet->surveys) {
		fleet->surveys->pending = 0;
		end(fleet, fleet->surveys);
	}
}

void survey_free(struct fleet *fleet)
{
	while (fleet->seen_hosts) {
		struct seen_host *next = fleet->seen_hosts->next;

		free(fleet->seen_hosts);
		fleet->seen_hosts = next;
	}
}

bool survey_is_done(const struct fleet *fleet, const struct holding *holding, uint64_t asked_ns)
{
	uint64_t seen_ns = holding ? holding->seen_ns : fleet->hosts_seen_ns;

	if (!fleet->connected || fleet->state != FLEET_READY)
		return true;
	if (is_under_way(fleet, holding))
		return false;
	return seen_ns + FRESH_NS >= asked_ns;
}

const struct seen_host *survey_hosts(const struct fleet *fleet)
{
	return fleet->seen_hosts;
}

int64_t survey_now_ms(const struct fleet *fleet)
{
	if (!fleet->clock_ms)
		return 0;
	return fleet->clock_ms + (int64_t)((fleet->now_ns - fleet->clock_ns) / 1000000);
}

bool survey_is_leased(const struct holding *holding, uint32_t index)
{
	return index < holding->seen_count && holding->seen[index].leased;
}

const struct seen_host *survey_holder(const struct fleet *fleet, const struct holding *holding,
				      uint32_t index)
{
	if (index >= holding->seen_count || !*holding->seen[index].hid)
		return NULL;
	return find(fleet, holding->seen[index].hid);
}
