/*
 * allowance - what the service behind a limiter says that it still allows: so many tokens until a
 * time.
 *
 * Each report holds until its own time, whatever is reported later: so none raises another, one
 * that comes late changes nothing, and windows of a second, a minute and a day hold side by side. A
 * grant counts in all of them. Of two reports one is dropped if the other allows no more, whatever
 * comes back, and ends no sooner. Where there are more than ALLOWANCES_MAX, two that end one after
 * the other become one: the fewer tokens until the later time.
 *
 * Tokens that come back are there again, up to those reported.
 *
 * IN A FLEET a host has a share of each report: as large a part of its tokens, rounded down, as the
 * leaves that count for it are of all leaves, without the tokens that this host granted since.
 * Leaves count that the host has when it hears the report, and those that come later and whose host
 * before had left their part of it. A leaf that goes takes its part along, so only as many may go
 * as the tokens that are left come to. Every leaf is one host's: so all hosts together grant no
 * more than was reported since each of them heard it.
 *
 * Reports of about the same end become one. Then a leaf that comes brings its part of the fewer
 * tokens, and one that goes takes its part of the more, as long as its next host may not have heard
 * of the later report (allowances_settle()). Both are rounded to the side on which nothing is
 * granted twice.
 */
#ifndef RATEFS_CORE_ALLOWANCE_H
#define RATEFS_CORE_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

enum { ALLOWANCES_MAX = 4 };

/* In place of the id of a report: no other host was told of it; it is several in one. */
#define ALLOWANCE_UNTOLD UINT64_C(0)
#define ALLOWANCE_JOINED UINT64_C(1)

struct allowance {
	int64_t left;  /* of this host's share; negative in debt */
	uint64_t most; /* tokens that were reported, or fewer */
	uint64_t until_ns;
	uint64_t id;   /* by which the hosts of a fleet know it; or one of those above */
	uint32_t part; /* leaves that count */

	/* Of one that was joined: tokens of which a leaf that goes takes its part. */
	bool joined;
	uint64_t cost, cost_before; /* @most to TOKENS_MAX; of the last time, and the one before */
	uint64_t turned_ns;	    /* @cost is of the time since */
};

/* In the order of their ends. Begins as zeros. */
struct allowances {
	struct allowance list[ALLOWANCES_MAX];
	uint32_t count;
	uint32_t whole;	 /* all leaves; 0: this host has all tokens */
	bool voided;	 /* that none holds any more is still to be told to the fleet */
	uint64_t now_ns; /* of the last run */
};

/*
 * Notes a report: @tokens (at most TOKENS_MAX) until @until_ns; in a fleet @part leaves count, and
 * hosts know it as @id.
 */
void allowances_add(struct allowances *allowances, uint64_t tokens, uint64_t until_ns,
		    uint32_t part, uint64_t id);

/* There are @whole leaves, 0 where hosts share nothing. */
void allowances_set_whole(struct allowances *allowances, uint32_t whole);

/*
 * So many leaves came that count; went, with their part; no more than so many count, and what was
 * left of the others is lost; their next hosts may hear of a report that was not told only much
 * later, and of no more than they left of it then. Leaves that go once hosts share nothing take
 * along what they are worth when hosts share again.
 */
void allowances_gain(struct allowances *allowances, uint32_t leaves);
void allowances_lose(struct allowances *allowances, uint32_t leaves);
void allowances_bound(struct allowances *allowances, uint32_t leaves);

/* Returns how many leaves may go, UINT32_MAX: all. Run first. */
uint32_t allowances_spare(const struct allowances *allowances);

/* Report @id is known as @other from now on. Drops report @id; all that hosts were told of. */
void allowances_rename(struct allowances *allowances, uint64_t id, uint64_t other);
void allowances_end(struct allowances *allowances, uint64_t id);
void allowances_end_told(struct allowances *allowances);

/* Drops those that are over. */
void allowances_run(struct allowances *allowances, uint64_t now_ns);

/* Notes that all hosts know of what was told @settle_ns ago. Run first. */
void allowances_settle(struct allowances *allowances, uint64_t settle_ns);

/* Tells whether there is a report that no other host was told of. */
bool allowances_have_untold(const struct allowances *allowances);

void allowances_take(struct allowances *allowances, uint64_t tokens);
void allowances_put(struct allowances *allowances, uint64_t tokens);

/* Returns the one with the fewest tokens left; NULL: there is none. */
const struct allowance *allowances_least(const struct allowances *allowances);

/* Tells whether @tokens are left in all. */
bool allowances_have(const struct allowances *allowances, uint64_t tokens);

/* Returns how many of @most tokens are left until @at_ns. */
uint64_t allowances_until(const struct allowances *allowances, uint64_t at_ns, uint64_t most);

/* Returns from when on no report is against @tokens; 0: now. */
uint64_t allowances_when(const struct allowances *allowances, uint64_t tokens);

#endif
