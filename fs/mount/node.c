/* node - THE TABLE of files, see node.h. */
#include "fs/mount/node.h"
#include "fs/mount/handle.h"
#include "fs/mount/metrics.h"
#include "fs/mount/show.h"

#include <assert.h>
#include <string.h>

/* One look for all rows. */
/* clang-format off */
const struct node_row NODES[] = {
	[NODE_ROOT] = {.access = ACCESS_LIMITER},
	[NODE_LIMITER] = {
		.label = "LIMITER/", .place = NODE_ROOT, .access = ACCESS_LIMITER,
		.help = "a rate limiter: mkdir makes one, rmdir removes it, mv renames it"},
	[NODE_TAKE] = {.name = "take", .place = NODE_LIMITER, .access = ACCESS_DIRECTORY},
	[NODE_TAKE_N] = {
		.label = "N[,within=DURATION]", .place = NODE_TAKE, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.read = read_tokens, .poll = poll_tokens,
		.help = "blocks until N tokens are granted together; with within=, EBUSY "
			"at once if they cannot be had in time"},
	[NODE_ETA] = {.name = "eta", .place = NODE_LIMITER, .access = ACCESS_DIRECTORY},
	[NODE_ETA_N] = {
		.label = "N", .place = NODE_ETA, .access = ACCESS_USE,
		.read = read_text, .show = show_eta,
		.help = "seconds until N tokens would be granted; takes nothing"},
	[NODE_PARTITIONS] = {
		.name = "partitions", .place = NODE_LIMITER, .access = ACCESS_DIRECTORY},
	[NODE_PARTITION] = {
		.label = "P/", .place = NODE_PARTITIONS, .access = ACCESS_DIRECTORY,
		.help = "partition P, a share of the limiter; r0, r1, ... are the reserve"},
	[NODE_KEYS] = {.name = "keys", .place = NODE_LIMITER, .access = ACCESS_DIRECTORY},
	[NODE_KEY] = {
		.label = "KEY/", .place = NODE_KEYS, .access = ACCESS_DIRECTORY,
		.help = "any name: made on first use, with key_rate and key_burst of its own; "
			"forgotten when it is full and idle"},
	[NODE_KEY_TAKE] = {.name = "take", .place = NODE_KEY, .access = ACCESS_DIRECTORY},
	[NODE_KEY_TAKE_N] = {
		.label = "N[,within=DURATION]", .place = NODE_KEY_TAKE, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.read = read_tokens, .poll = poll_tokens,
		.help = "as take/N, of the key and of the limiter"},
	[NODE_KEY_ETA] = {.name = "eta", .place = NODE_KEY, .access = ACCESS_DIRECTORY},
	[NODE_KEY_ETA_N] = {
		.label = "N", .place = NODE_KEY_ETA, .access = ACCESS_USE,
		.read = read_text, .show = show_eta,
		.help = "as eta/N, of the key and of the limiter"},

	{
		.name = "README", .place = NODE_ROOT, .access = ACCESS_USE,
		.read = read_text, .show = show_readme,
		.help = "how to use the tree; every file, by what reading it costs"},
	{
		.name = "status", .place = NODE_ROOT, .access = ACCESS_USE,
		.read = read_text, .show = show_status,
		.help = "the daemon: version, host, source, limiters, waiters, uptime"},
	{
		.name = "metrics", .place = NODE_ROOT, .access = ACCESS_USE,
		.open = open_view, .read = read_metrics,
		.help = "every stat of every limiter that one may use, in Prometheus text format"},
	{
		.name = "hosts", .place = NODE_ROOT, .access = ACCESS_USE,
		.read = read_text, .show = show_hosts, .survey = true,
		.help = "the hosts: name, weight, partitions held, seconds since last heard of"},
	{
		.name = "events", .place = NODE_ROOT, .access = ACCESS_USE,
		.cost = COST_ENDLESS,
		.open = open_view, .read = read_events, .poll = poll_events,
		.help = "state changes from now on, a line each, as they happen"},
	{
		.name = "last_error", .place = NODE_ROOT, .access = ACCESS_USE,
		.read = read_text, .show = show_last_error,
		.help = "why the last write, mkdir, rmdir or mv of this user was refused"},

	{
		.name = "token", .place = NODE_LIMITER, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.read = read_tokens, .poll = poll_tokens,
		.help = "blocks until one token is granted"},
	{
		.name = "try", .place = NODE_LIMITER, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.read = read_try,
		.help = "one token now, or EBUSY"},
	{
		.name = "stream", .place = NODE_LIMITER, .access = ACCESS_USE,
		.cost = COST_ENDLESS,
		.read = read_stream, .poll = poll_tokens,
		.help = "endless: every line read is one token"},
	{
		.name = "slot", .place = NODE_LIMITER, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.open = open_slot, .read = read_slot,
		.help = "open blocks until one of `concurrency` slots is free; close, or death, "
			"frees it"},
	{
		.name = "charge", .place = NODE_LIMITER, .access = ACCESS_REPORT,
		.cost = COST_WRITE,
		.write = write_charge,
		.help = "`12`: it cost 12 more than was taken; `-5`: 5 came back unused"},
	{
		.name = "feedback", .place = NODE_LIMITER, .access = ACCESS_REPORT,
		.cost = COST_WRITE,
		.write = write_feedback,
		.help = "how the work went: ok, throttled or error, or a HTTP status, one a line"},
	{
		.name = "rate", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_RATE,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "tokens a period, such as 500/s; several that all hold: 10/s 5000/h:100"},
	{
		.name = "burst", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_BURST,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "tokens that an idle limiter may save up"},
	{
		.name = "release_interval", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_RELEASE_INTERVAL,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "release tokens in even batches, so far apart; 0s: one by one"},
	{
		.name = "enforcement", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_ENFORCEMENT,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "enforce; shadow grants at once and counts; open grants at once; "
			"closed grants none"},
	{
		.name = "offline", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_OFFLINE,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "in a fleet, without ZooKeeper: block, open, or share:N, the rate divided by N"},
	{
		.name = "adapt", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_ADAPT,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "feel for the rate that the service gives: none, aimd or cubic"},
	{
		.name = "backoff", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_BACKOFF,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "pause when throttled: none, exponential or linear"},
	{
		.name = "concurrency", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_CONCURRENCY,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "how many slots may be open: max, a number, or auto min=1 max=200 "
			"decrease=0.9"},
	{
		.name = "key_rate", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_KEY_RATE,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "tokens a period of each key, such as 10/s; max: keys limit nothing"},
	{
		.name = "key_burst", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_KEY_BURST,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "tokens that an idle key may save up"},
	{
		.name = "keys_max", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_KEYS_MAX,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "keys that are remembered; for one more the oldest idle one is forgotten"},
	{
		.name = "config", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.read = read_text, .show = show_config, .write = write_config,
		.write_max = CONFIG_TEXT,
		.help = "every setting, one name=value per line; a write applies all or nothing"},
	{
		.name = "stat", .place = NODE_LIMITER, .access = ACCESS_USE,
		.read = read_text, .show = show_stat,
		.help = "counters and gauges, one `name value` per line"},
	{
		.name = "waiters", .place = NODE_LIMITER, .access = ACCESS_USE,
		.read = read_text, .show = show_waiters,
		.help = "who is blocked, in order: pid, uid, tokens, seconds waited, "
			"seconds to go"},

	{
		.name = "count", .place = NODE_PARTITIONS, .access = ACCESS_TUNE,
		.setting = SETTING_PARTITIONS_COUNT,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "how many shares the capacity is cut into: auto or 1 to 4096"},
	{
		.name = "lease", .place = NODE_PARTITIONS, .access = ACCESS_TUNE,
		.setting = SETTING_PARTITIONS_LEASE,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "how long a share is held before it is competed for again"},
	{
		.name = "reserve", .place = NODE_PARTITIONS, .access = ACCESS_TUNE,
		.setting = SETTING_PARTITIONS_RESERVE,
		.read = read_text, .show = show_setting, .write = write_setting,
		.help = "capacity that every host has to itself: none, or 10/s hosts=8"},
	{
		.name = "held", .place = NODE_PARTITIONS, .access = ACCESS_USE,
		.read = read_text, .show = show_held,
		.help = "the partitions that this host holds"},

	{
		.name = "token", .place = NODE_PARTITION, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.read = read_tokens, .poll = poll_tokens,
		.help = "as token, from this partition alone"},
	{
		.name = "rate", .place = NODE_PARTITION, .access = ACCESS_USE,
		.read = read_text, .show = show_partition_rate,
		.help = "its share of the rate"},
	{
		.name = "state", .place = NODE_PARTITION, .access = ACCESS_USE,
		.read = read_text, .show = show_partition_state, .survey = true,
		.help = "free, held, waiting, draining or reserved"},
	{
		.name = "holder", .place = NODE_PARTITION, .access = ACCESS_USE,
		.read = read_text, .show = show_partition_holder, .survey = true,
		.help = "name of the host that holds it; empty: nobody"},
	{
		.name = "expires", .place = NODE_PARTITION, .access = ACCESS_USE,
		.read = read_text, .show = show_partition_expires,
		.help = "seconds until this host's right to it ends unless renewed; max: never"},

	{
		.name = "token", .place = NODE_KEY, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.read = read_tokens, .poll = poll_tokens,
		.help = "as token, of the key and of the limiter"},
	{
		.name = "try", .place = NODE_KEY, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.read = read_try,
		.help = "as try, of the key and of the limiter"},
	{
		.name = "stream", .place = NODE_KEY, .access = ACCESS_USE,
		.cost = COST_ENDLESS,
		.read = read_stream, .poll = poll_tokens,
		.help = "as stream, of the key and of the limiter"},
	{
		.name = "stat", .place = NODE_KEY, .access = ACCESS_USE,
		.read = read_text, .show = show_stat,
		.help = "counters and gauges of the key since it was made"},
};
/* clang-format on */

const unsigned int NODE_COUNT = sizeof(NODES) / sizeof(NODES[0]);

static_assert(sizeof(NODES) / sizeof(NODES[0]) <= NODE_ROWS_MAX, "a row fits its bits");

bool node_name_is_taken(const char *name)
{
	for (unsigned int i = NODE_ROOT; i < NODE_COUNT; i++) {
		if (NODES[i].name && !strcmp(name, NODES[i].name) &&
		    (NODES[i].place == NODE_ROOT || NODES[i].place == NODE_LIMITER))
			return true;
	}
	return false;
}

void node_path(const struct node_row *row, char path[NODE_PATH_TEXT])
{
	if (row == &NODES[NODE_ROOT]) {
		*path = '\0';
		return;
	}
	node_path(&NODES[row->place], path);
	snprintf(path + strlen(path), NODE_PATH_TEXT - strlen(path), "%s%s",
		 row->name ? row->name : row->label,
		 row->name && row->access == ACCESS_DIRECTORY ? "/" : "");
}
