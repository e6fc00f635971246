/*
 * table - THE TABLE of files, see node.h, and that of kinds of requests that wait, see pending.h.
 */
#include "fs/mount/await.h"
#include "fs/mount/consumers.h"
#include "fs/mount/follow.h"
#include "fs/mount/frozen.h"
#include "fs/mount/holders.h"
#include "fs/mount/metrics.h"
#include "fs/mount/pending.h"
#include "fs/mount/pressure_file.h"
#include "fs/mount/read.h"
#include "fs/mount/report.h"
#include "fs/mount/show.h"
#include "fs/mount/slot.h"
#include "fs/mount/text_file.h"
#include "fs/mount/until.h"
#include "fs/mount/why.h"
#include "fs/mount/write.h"

#include <assert.h>

/* One look for all rows. */
/* clang-format off */
const struct node_row NODES[] = {
	[NODE_NONE] = {.kind = &PLAIN_DIRECTORY},
	[NODE_ROOT] = {.access = ACCESS_LIMITER, .kind = &LIMITERS_DIRECTORY},
	[NODE_LIMITER] = {
		.label = "LIMITER/", .place = NODE_ROOT, .access = ACCESS_LIMITER,
		.kind = &LIMITERS_DIRECTORY,
		.help = "a rate limiter: mkdir makes one, rmdir removes it, mv renames it"},
	[NODE_TAKE] = {
		.name = "take", .place = NODE_LIMITER, .access = ACCESS_DIRECTORY,
		.kind = &TAKES_DIRECTORY},
	[NODE_TAKE_N] = {
		.label = "N[,within=DURATION]", .place = NODE_TAKE, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &TOKENS_FILE,
		.help = "blocks until N tokens are granted together; with within=, EBUSY "
			"at once if they cannot be had in time"},
	[NODE_TAKE_RANGE] = {
		.label = "A-B[,within=DURATION]", .place = NODE_TAKE, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &TOKENS_FILE,
		.help = "blocks until A tokens are there, and gives as many as are, up to B"},
	[NODE_ETA] = {
		.name = "eta", .place = NODE_LIMITER, .access = ACCESS_DIRECTORY,
		.kind = &ETAS_DIRECTORY},
	[NODE_ETA_N] = {
		.label = "N", .place = NODE_ETA, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_eta,
		.help = "seconds until N tokens would be granted; takes nothing"},
	[NODE_SLOT_WITHIN] = {
		.label = "slot,within=DURATION", .place = NODE_LIMITER, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &SLOT_FILE,
		.help = "as slot; with EBUSY if there is none in that time, 0: at once"},
	[NODE_PARTITIONS] = {
		.name = "partitions", .place = NODE_LIMITER, .access = ACCESS_DIRECTORY,
		.kind = &PARTITIONS_DIRECTORY},
	[NODE_PARTITION] = {
		.label = "P/", .place = NODE_PARTITIONS, .access = ACCESS_DIRECTORY,
		.kind = &PLAIN_DIRECTORY,
		.help = "partition P, a share of the limiter; r0, r1, ... are the reserve"},
	[NODE_PIECE] = {
		.label = "A-B/", .place = NODE_PARTITIONS, .access = ACCESS_DIRECTORY,
		.kind = &PLAIN_DIRECTORY,
		.help = "in a fleet that shares it in pieces: its parts A to B"},
	[NODE_KEYS] = {
		.name = "keys", .place = NODE_LIMITER, .access = ACCESS_DIRECTORY,
		.kind = &KEYS_DIRECTORY},
	[NODE_KEY] = {
		.label = "KEY/", .place = NODE_KEYS, .access = ACCESS_DIRECTORY,
		.kind = &KEY_DIRECTORY,
		.help = "any name: made on first use, with key_rate and key_burst of its own; "
			"forgotten when it is full and idle"},
	[NODE_KEY_TAKE] = {
		.name = "take", .place = NODE_KEY, .access = ACCESS_DIRECTORY,
		.kind = &TAKES_DIRECTORY},
	[NODE_KEY_TAKE_N] = {
		.label = "N[,within=DURATION]", .place = NODE_KEY_TAKE, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &TOKENS_FILE,
		.help = "as take/N, of the key and of the limiter"},
	[NODE_KEY_TAKE_RANGE] = {
		.label = "A-B[,within=DURATION]", .place = NODE_KEY_TAKE, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &TOKENS_FILE,
		.help = "as take/A-B, of the key and of the limiter"},
	[NODE_KEY_ETA] = {
		.name = "eta", .place = NODE_KEY, .access = ACCESS_DIRECTORY,
		.kind = &ETAS_DIRECTORY},
	[NODE_KEY_ETA_N] = {
		.label = "N", .place = NODE_KEY_ETA, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_eta,
		.help = "as eta/N, of the key and of the limiter"},
	[NODE_KEY_SLOT_WITHIN] = {
		.label = "slot,within=DURATION", .place = NODE_KEY, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &SLOT_FILE,
		.help = "as slot,within=DURATION, of the key and of the limiter"},

	{
		.name = "README", .place = NODE_ROOT, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_readme,
		.help = "how to use the tree; every file, by what reading it costs"},
	{
		.name = "status", .place = NODE_ROOT, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_status,
		.help = "the daemon: version, host, source, limiters, waiters, uptime"},
	{
		.name = "metrics", .place = NODE_ROOT, .access = ACCESS_USE,
		.kind = &METRICS_FILE,
		.help = "the stats of all limiters that one may use, in Prometheus text format"},
	{
		.name = "hosts", .place = NODE_ROOT, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_hosts,
		.until = until_surveyed, .brief = true, .columns = "host weight held seconds id",
		.help = "the hosts: name, weight, partitions held, seconds since last heard of, "
			"id"},
	{
		.name = "events", .place = NODE_ROOT, .access = ACCESS_USE,
		.cost = COST_ENDLESS,
		.kind = &EVENTS_FILE, .until = until_event,
		.help = "state changes from now on, a line each, as they happen"},
	{
		.name = "last_error", .place = NODE_ROOT, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_last_error, .own = true,
		.help = "why this user was refused last: a write, a mkdir, a rmdir, a mv, or a "
			"read by a bound; how long ago, at which file"},
	{
		.name = "frozen", .place = NODE_ROOT, .access = ACCESS_OWNER,
		.kind = &FROZEN_FILE, .show = frozen_show, .until = until_asked,
		.help = "the threads that wait; as long as it is open for writing nothing is "
			"granted: --freeze"},

	{
		.name = "token", .place = NODE_LIMITER, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &TOKENS_FILE,
		.help = "blocks until one token is granted"},
	{
		.name = "try", .place = NODE_LIMITER, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &TRY_FILE,
		.help = "one token now, or EBUSY"},
	{
		.name = "stream", .place = NODE_LIMITER, .access = ACCESS_USE,
		.cost = COST_ENDLESS,
		.kind = &STREAM_FILE,
		.help = "endless: every line read is one token"},
	{
		.name = "slot", .place = NODE_LIMITER, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &SLOT_FILE,
		.help = "open blocks until one of `concurrency` slots is free; close, or death, "
			"frees it"},
	{
		.name = "charge", .place = NODE_LIMITER, .access = ACCESS_REPORT,
		.cost = COST_WRITE,
		.kind = &CHARGE_FILE,
		.help = "`12`: it cost 12 more than was taken; `-5`: 5 came back unused"},
	{
		.name = "feedback", .place = NODE_LIMITER, .access = ACCESS_REPORT,
		.cost = COST_WRITE,
		.kind = &FEEDBACK_FILE,
		.help = "how the work went: ok, throttled or error, or a HTTP status, one a line"},
	{
		.name = "rate", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_RATE,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "tokens a period, such as 500/s; several that all hold: 10/s 5000/h:100"},
	{
		.name = "burst", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_BURST,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "tokens that an idle limiter may save up"},
	{
		.name = "release_interval", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_RELEASE_INTERVAL,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "release tokens in even batches, so far apart; 0s: one by one"},
	{
		.name = "enforcement", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_ENFORCEMENT,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "enforce; shadow grants at once and counts; open grants at once; "
			"closed grants none"},
	{
		.name = "offline", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_OFFLINE,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "in a fleet, without ZooKeeper: block, open, or share:N, the rate "
			"divided by N"},
	{
		.name = "adapt", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_ADAPT,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "feel for the rate that the service gives: none, aimd or cubic"},
	{
		.name = "backoff", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_BACKOFF,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "pause when throttled: none, exponential or linear"},
	{
		.name = "concurrency", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_CONCURRENCY,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "how many slots may be open: max, a number, or auto min=1 max=200 "
			"decrease=0.9"},
	{
		.name = "key_rate", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_KEY_RATE,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "tokens a period of each key, such as 10/s; max: keys limit nothing"},
	{
		.name = "key_burst", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_KEY_BURST,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "tokens that an idle key may save up"},
	{
		.name = "key_concurrency", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_KEY_CONCURRENCY,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "slots of each key that may be open: max, or a number"},
	{
		.name = "keys_max", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_KEYS_MAX,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "keys that are remembered; for one more the oldest idle one is forgotten"},
	{
		.name = "key_share", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_KEY_SHARE,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "how hosts of a fleet share each key: proportional, or leased where it is "
			"asked for"},
	{
		.name = "weight", .place = NODE_LIMITER, .access = ACCESS_PLACE,
		.setting = SETTING_WEIGHT,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "its part of what siblings share, in proportion: 1 to 10000"},
	{
		.name = "min", .place = NODE_LIMITER, .access = ACCESS_PLACE,
		.setting = SETTING_MIN,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "a rate that is granted before anything else of the parent: none, or 10/s"},
	{
		.name = "priority", .place = NODE_LIMITER, .access = ACCESS_PLACE,
		.setting = SETTING_PRIORITY,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "0 to 9: of what is left after every min, higher ones come first"},
	{
		.name = "queue_max", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_QUEUE_MAX,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "readers that may wait; one more gets EBUSY: max, or a number"},
	{
		.name = "wait_max", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.setting = SETTING_WAIT_MAX,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "a reader that would wait longer gets EBUSY: max, or such as 30s"},
	{
		.name = "config", .place = NODE_LIMITER, .access = ACCESS_TUNE,
		.kind = &CONFIG_FILE, .show = show_config,
		.help = "every setting, one name=value per line; a write applies all or nothing"},
	{
		.name = "stat", .place = NODE_LIMITER, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_stat,
		.help = "counters and gauges, one `name value` per line"},
	{
		.name = "waiters", .place = NODE_LIMITER, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_waiters,
		.columns = "pid uid tokens waited left command",
		.help = "the readers that are blocked, in order: pid, uid, tokens, "
			"seconds waited, seconds to go, command"},
	{
		.name = "users", .place = NODE_LIMITER, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = consumers_show,
		.columns = "uid command key granted waiting slots",
		.help = "who has had most of it: uid, command, key, granted, waiting, slots"},
	{
		.name = "fleet", .place = NODE_LIMITER, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = holders_show_hosts,
		.until = until_hosts_seen, .brief = true,
		.columns = "host share rate granted waiting seconds",
		.help = "each host's part: host, share, tokens a second, granted a second, "
			"waiting, seconds ago; `=` for all, `-` for the free part"},
	{
		.name = "pressure", .place = NODE_LIMITER, .access = ACCESS_WATCH,
		.kind = &PRESSURE_FILE, .show = pressure_file_show, .until = until_pressed,
		.help = "how much of the time a reader waited here or below, as PSI; a write "
			"sets a threshold for polls"},
	{
		.name = "holders", .place = NODE_LIMITER, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = holders_show,
		.until = until_hosts_seen, .brief = true,
		.columns = "host pid uid command seconds",
		.help = "the open slots of all hosts: host, pid, uid, command, seconds; what "
			"other hosts lease"},
	{
		.name = "why", .place = NODE_LIMITER, .access = ACCESS_USE,
		.kind = &VIEW_FILE, .show = why_show,
		.until = until_slots_seen, .brief = true,
		.help = "why one more reader would wait: each limiter on the way up that is short"},

	{
		.name = "count", .place = NODE_PARTITIONS, .access = ACCESS_TUNE,
		.setting = SETTING_PARTITIONS_COUNT,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "how many shares the capacity is cut into: auto or 1 to 4096"},
	{
		.name = "lease", .place = NODE_PARTITIONS, .access = ACCESS_TUNE,
		.setting = SETTING_PARTITIONS_LEASE,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "how long a share is held before it is competed for again"},
	{
		.name = "reserve", .place = NODE_PARTITIONS, .access = ACCESS_TUNE,
		.setting = SETTING_PARTITIONS_RESERVE,
		.kind = &SETTING_FILE, .show = show_setting,
		.help = "capacity that every host has to itself: none, or 10/s hosts=8"},
	{
		.name = "held", .place = NODE_PARTITIONS, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_held,
		.help = "the partitions that this host holds"},

	{
		.name = "token", .place = NODE_PARTITION, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &TOKENS_FILE,
		.help = "as token, from this partition alone"},
	{
		.name = "rate", .place = NODE_PARTITION, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_partition_rate,
		.help = "its share of the rate"},
	{
		.name = "state", .place = NODE_PARTITION, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_partition_state,
		.until = until_surveyed, .brief = true,
		.help = "free, held, waiting, draining or reserved"},
	{
		.name = "holder", .place = NODE_PARTITION, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_partition_holder,
		.until = until_surveyed, .brief = true,
		.help = "name of the host that holds it; empty: none"},
	{
		.name = "expires", .place = NODE_PARTITION, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_partition_expires,
		.help = "seconds until this host's right to it ends unless renewed; max: never"},

	/* Their order is known to numbers of files, see node.h. */
	{
		.name = "rate", .place = NODE_PIECE, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_partition_rate,
		.help = "what it is worth: its part of the rate"},
	{
		.name = "state", .place = NODE_PIECE, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_partition_state,
		.until = until_surveyed, .brief = true,
		.help = "as of a partition; no files of its own take its tokens"},
	{
		.name = "holder", .place = NODE_PIECE, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_partition_holder,
		.until = until_surveyed, .brief = true,
		.help = "name of the host that holds it; empty: none"},

	{
		.name = "token", .place = NODE_KEY, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &TOKENS_FILE,
		.help = "as token, of the key and of the limiter"},
	{
		.name = "try", .place = NODE_KEY, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &TRY_FILE,
		.help = "as try, of the key and of the limiter"},
	{
		.name = "stream", .place = NODE_KEY, .access = ACCESS_USE,
		.cost = COST_ENDLESS,
		.kind = &STREAM_FILE,
		.help = "as stream, of the key and of the limiter"},
	{
		.name = "stat", .place = NODE_KEY, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = show_stat,
		.help = "counters and gauges of the key since it was made"},
	{
		.name = "slot", .place = NODE_KEY, .access = ACCESS_USE,
		.cost = COST_TOKENS,
		.kind = &SLOT_FILE,
		.help = "as slot, one of `key_concurrency` of the key, and of the limiter's"},
	{
		.name = "holders", .place = NODE_KEY, .access = ACCESS_USE,
		.kind = &TEXT_FILE, .show = holders_show,
		.columns = "host pid uid command seconds",
		.help = "the open slots of the key: host, pid, uid, command, seconds"},
	{
		.name = "rate", .place = NODE_KEY, .access = ACCESS_TUNE,
		.setting = SETTING_KEY_RATE,
		.kind = &OVERRIDE_FILE, .show = show_override,
		.help = "the key's rate, such as 100/s, in place of key_rate; default: key_rate"},
	{
		.name = "burst", .place = NODE_KEY, .access = ACCESS_TUNE,
		.setting = SETTING_KEY_BURST,
		.kind = &OVERRIDE_FILE, .show = show_override,
		.help = "the key's burst, in place of key_burst; default: key_burst"},
	{
		.name = "why", .place = NODE_KEY, .access = ACCESS_USE,
		.kind = &VIEW_FILE, .show = why_show,
		.until = until_slots_seen, .brief = true,
		.help = "why a reader waits for the key: as why, and the key's own rate"},
};

const unsigned int NODE_COUNT = sizeof(NODES) / sizeof(NODES[0]);

static_assert(sizeof(NODES) / sizeof(NODES[0]) <= NODE_ROWS_MAX, "a row fits its bits");

const struct pending_row PENDING_ROWS[PENDING_KIND_COUNT] = {
	[PENDING_READER] = {
		.collect = read_collect, .answer = read_answer, .give_up = read_give_up,
		.since_ns = read_since_ns},
	[PENDING_OPENER] = {
		.answer = slot_answer, .give_up = slot_give_up, .since_ns = read_since_ns},
	[PENDING_WRITER] = {
		.collect = write_collect, .answer = write_answer, .give_up = write_give_up,
		.expire = write_expire, .queued = true, .resolute = true},
	[PENDING_AWAITER] = {
		.collect = await_collect, .answer = await_answer, .queued = true},
	[PENDING_PAGE] = {.give_up = pages_give_up}, /* the thread of the page answers */
};
/* clang-format on */
