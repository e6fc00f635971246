/*
 * calm_check - the debts of a fleet when nothing goes wrong: capacity is granted again in time
 * and used, equal hosts get equal shares, and the coordinator is asked so often at most.
 *
 * Fed with events; knows nothing of the core but the shape of settings and the rules of fleet.h.
 * From where each bound comes, with W the window, R the interval of renewals, L limiters:
 *
 * I3, time to the first grant: derived, beside calm_check_settle_ns() and calm_check_wait_ns().
 *
 * I4, requests of one host in W, in calm and in trouble. Derived is what the rules bound:
 *   - a renewal in each R (rule 5), and as many transactions that settings refuse (rule 2):
 *     2 (W/R + 1);
 *   - a refused take ends after REFUSALS_MAX = 6 others in its round (take.c), and a round begins
 *     with three lists: so 7 refusals for three lists, and one for each renewal;
 *   - for each partition that is given back one host that waits is woken, by a transaction of its
 *     own (claim.h);
 *   - the node of the next host is read in each R, and that of the one after it if the next one is
 *     silent (rule 10): 2 (W/R + 1) reads. A claim that was made is watched, and read again when it
 *     wakes its host: one read for each transaction, and one for each partition that is given back.
 *     Tiles are not read, since their names are the state (6), and leases are not watched;
 *   - a limiter without numbers is listed because claims changed every R/4 at most (portion.c),
 *     once every R because leaves came free, and once every R for any other reason: 6 rounds of
 *     two lists, and one of hosts where strangers hold tiles. That many are not seen of all
 *     limiters, so the bound below is a measured one.
 *   The rest follows from demand, and the rules allow more of it than is ever seen: demand
 *   counts for a second, so where demand comes and goes a host may take and give back each
 *   partition every second. It is measured, in 19,149 windows of 250 fleets of 2 to 8 hosts with
 *   faults:
 *   - leases that were asked for: 41 for each limiter, of 20 partitions at most; in an hour of
 *     1,000 hosts 348 of 2,000 partitions. The bound is 60, and one for each partition; a
 *     transaction that was refused asked for 32 at most, which are asked for again;
 *   - transactions that were done, beside the renewals, one for each of those leases, and one for
 *     each change of settings: 12 for each limiter; the bound is 25;
 *   - lists: 4.9 for each limiter and R; 6.7 in a fleet of 8 hosts with three limiters, one of
 *     them in another, whose hosts all made their claims anew every R, so that one limiter had 9.7
 *     of its 12. The bound is 8, and 60 for rounds that were woken;
 *   - reads of all settings anew, after a transaction that was refused: 10; the bound is 16;
 *   - a change of settings, of any host, costs each host a read of /g and one of the limiter, and
 *     both again if another one came meanwhile: 4 at most; it may refuse a transaction;
 *   - reads beside the derived ones: 2.5 for each limiter, in 7,122 windows of 400 other fleets.
 *     The bound is 8.
 *   In those, leases that were asked for were 39 for each limiter, transactions that were done
 *   beside the renewals and one for each lease 24, and lists 6.1 for each limiter and R, before the
 *   60 for rounds that were woken are taken off.
 *
 * I5, use of the rate in W, where readers always wait: those that ask again once they are served,
 * or such as have waited for 2 s. Of readers at random some may always wait that have all they ask
 * for: where they want 92 % of what their host has the queue is not empty for half a minute at a
 * time.
 *   - More use than 95 % of what a host holds makes it want another partition (demand.c), so where
 *     readers always wait at most 5 % is left. A token may be on its way in each host's bucket.
 *     Measured: 99.3 % at least, in 296 windows of those fleets.
 *   - With more hosts than partitions each partition changes hands once in `lease`, 3 s at least
 *     in random fleets, and the host whose turn comes is woken for it: a few round trips. Nothing
 *     rests on that: where turns of hosts end within a round trip of one another they may wake the
 *     same host, and a partition is free until another looks, 1.25 R at most. That shifts the turns
 *     apart, so once in W for each partition: 1 - 1.25 R / W remains. Measured: 94.4 % used at
 *     least, where 83 % are owed.
 *   - A host whose readers use keys with a rate each wants all that others leave, as its keys'
 *     rates are parts of what it holds, whether its readers use that or not: with such keys on any
 *     host neither use nor shares are judged.
 *   - A partition is not divided: a host whose readers do not use all of one keeps it for the part
 *     that they use. So of one partition each such host owes nothing.
 *   - Where partitions have no numbers hosts keep as much as they use, and a slack of a 256th
 *     altogether (portion.h); and not less than brings a token in a `lease`, so of that much each
 *     such host owes nothing. Measured: 95.7 % at least, in 60 windows, with readers at random on
 *     the other hosts, and 98.7 % at least without.
 *
 * I6, shares of equal hosts in W: their holdings differ by one partition (share.h: remainders go
 * one by one), their clocks by 1 %, and tokens that were saved up, and one on its way, come on top.
 * When a claim is replaced the remainder goes to another host, and each host sees that at its own
 * next look: another partition for that. Measured: 1.02 partitions at most, in 223 windows. Where
 * partitions have no numbers a hundredth of the rate stands in place of one: each host is within
 * 1 % of its share. Measured: nothing at all beside clocks and savings, in 25 windows. A strict
 * window of fewer than 100 tokens has as many leaves, so a token of the window stands there; and
 * each host may have had its part of one more window than another.
 */
#ifndef RATEFS_SIM_CALM_CHECK_H
#define RATEFS_SIM_CALM_CHECK_H

#include "tests/sim/invariants/rate_check.h"

#include "core/fleet/record.h"

/* Windows in which use, fairness and traffic are measured. */
#define CALM_WINDOW_NS UINT64_C(30000000000)

/* Requests of one host. */
struct traffic {
	uint64_t transactions, reads, lists;
	uint64_t refused; /* transactions */
	uint64_t leases;  /* asked for in transactions */
	uint64_t given;	  /* leaves that were given back */
	uint64_t changes; /* of settings: transactions that set /g ... */
	uint64_t heard;	  /* ... of all hosts together */
};

/* Tells whether settings of a limiter keep a rate that every host can have a part of. */
bool calm_check_is_steady(const struct settings *settings);

/*
 * So long after the last fault every host is back, if none pauses before it tries to join, and the
 * partitions of dead ones are free.
 */
uint64_t calm_check_settle_ns(const struct fleet_constants *constants);

/*
 * Returns the longest time that a reader of @tokens waits for the first grant of a limiter when
 * nothing goes wrong any more and it holds nothing; NEVER_NS for settings that grant nothing.
 */
uint64_t calm_check_wait_ns(const struct settings *settings,
			    const struct fleet_constants *constants, uint64_t tokens);

/* Hosts that are up. */
struct calm_hosts {
	uint32_t count;
	uint32_t idle; /* readers did not always wait on them, but they were granted some */
};

/*
 * Checks use: readers waited for @could tokens all the time, and were granted @did. False, and
 * @why.
 */
bool calm_check_use(const struct settings *settings, const struct fleet_constants *constants,
		    const struct calm_hosts *hosts, double could, double did, char why[WHY_TEXT]);

/*
 * Checks shares: of @hosts hosts that always wanted more, the poorest was granted @least and the
 * richest @most during CALM_WINDOW_NS. False, and @why.
 */
bool calm_check_shares(const struct settings *settings, uint32_t hosts, uint64_t least,
		       uint64_t most, char why[WHY_TEXT]);

/* The most limiters that a host had at once, and partitions of them all. */
struct calm_limiters {
	uint32_t count, partitions;
	uint32_t leased; /* of them such as keys are leased of */
};

/* Checks the requests of one host with @limiters during CALM_WINDOW_NS. False, and @why. */
bool calm_check_traffic(const struct traffic *traffic, const struct calm_limiters *limiters,
			const struct fleet_constants *constants, char why[WHY_TEXT]);

#endif
