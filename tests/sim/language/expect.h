/*
 * expect - statements of a trace about itself.
 *
 *	TIME expect granted PATH [by HOST] [in SPAN] OP N	tokens; with SPAN the most in any
 *								window of 10ms, 100ms, 1s or 10s
 *	TIME expect used PATH OP N %				of the rate while readers waited
 *	TIME expect wait PATH [by HOST] OP N s			the mean, of readers that were served
 *	TIME expect longest PATH [by HOST] OP N s		the longest of these waits
 *	TIME expect share PATH by HOST OP N %			of the grants of all hosts
 *	TIME expect tiles PATH [by HOST] OP N			leased, the mean of the hosts that have
 *								any, at this time
 *	TIME expect slots PATH [by HOST] OP N			that may be open, the mean over time
 *	TIME expect told PATH [by HOST] OP N			open slots, in the nodes of hosts
 *	TIME expect coordinator COUNT OP N			by its name in the summary
 *	TIME expect nodes PATH OP N				below this node, at this time
 *	TIME expect refused [by HOST] OP N			commands that were not done
 *	TIME expect service PATH FIELD OP N			ok and throttled calls; used_percent
 *								of its rate, throttled_percent of
 *								the calls
 *	TIME expect stat PATH FIELD [by HOST] OP N		in `stat`, at this time
 *	TIME expect PATH/SETTING [by HOST] is TEXT		at this time
 *	TIME expect answer NAME is TEXT				what NAME was told, at this very time
 *	TIME count						counts, means and windows begin anew
 *
 * PATH of granted, wait and longest may be a key's, PATH/keys/KEY, on one host.
 *
 * NAME is a reader, an opener or a poller, and TEXT is as in the log: `granted 5`, `granted slot`,
 * `refused EBUSY`, `text 0.500` (of several lines the last), `cancelled`, `returned`. Or it is a
 * command, such as `rmdir`, and the last one of it was refused. An answer is there to be expected
 * once: the next statement about NAME is about a later one.
 *
 * OP is >=, <= or =; `= LEAST..MOST` is a range. Without HOST it is the whole fleet's, but for
 * `stat` and settings, which are a host's. At one instant all that is due comes before.
 *
 * A statement that does not hold is told, with its line, and makes the exit status 1; the run goes
 * on. With --quiet a trace that expects something prints nothing else.
 */
#ifndef RATEFS_SIM_EXPECT_H
#define RATEFS_SIM_EXPECT_H

#include "tests/sim/language/trace.h"

struct sim;

/* The rest of an `expect` line. 0 or -1. */
int trace_parse_expect(struct line *line);

/* Looks whether it holds now; sim->missed if it does not. */
void expect_check(struct sim *sim, const struct command *command);

/* Counts from here on. */
void expect_count(struct sim *sim);

#endif
