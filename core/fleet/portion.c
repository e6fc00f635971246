/* portion - how many leaves this host keeps, takes, gives back and claims, see portion.h. */
#include "core/fleet/portion.h"

#include <math.h>

enum {
	IDLE_PARTS = 24,   /* of the limiter: slack while a host is short, of which ... */
	ROOT_PARTS = 2,	   /* ... such a part of the root of a demand is idle anyway, ... */
	DEMAND_PARTS = 28, /* ... and of the demand */
	SLACK_PARTS = 256, /* of the limiter: all holders together have it at least */
	PLENTY_PARTS = 2,  /* of the demand: the slack while no host is short */
	FIRST_PARTS = 2,   /* of what is free: so much is taken for the first readers */
	SOON_RENEWALS = 2, /* a token within so many R is soon enough */
	SAVING_TIMES = 2,  /* of the need: so much is kept until a token is saved up ... */
	PIECES_LEAST = 8,  /* ... of a limiter of so many pieces at least */
	BAND_MOST = 2,	   /* so many times the slack is kept ... */
	BAND_PARTS = 4,	   /* ... and less than a part of it is too little */
	PLAIN_PARTS = 8,   /* an excess of such a part of what is kept goes at once ... */
	PLAIN_LEAST = 4,
	SURE_PARTS = 2,		 /* ... and of such a part while the need is not known well */
	YOUNG_PARTS = 3,	 /* of `lease`: a smaller excess goes when it is so old */
	GREEDY_PARTS = 8,	 /* of what a claimant does not hold: it has all if it lacks more */
	ANSWERS_MOST = 16,	 /* so many give-backs in a row double */
	MODEST_PARTS = 3,	 /* more than an equal part, by such a part of it, is not much */
	NEAR_PARTS = 1000,	 /* of the limiter: so near to its share is at it at most */
	GIVING_PARTS = 4,	 /* of R: between two of its give-backs, and of its looks */
	WOKEN_LOOKS = 2,	 /* for leaves that came free, at once and in a row */
	SAVING_PARTS = 8,	 /* of `lease`: a turn is longer while a large take is saved up */
	HOLDER_WEIGHT = 1000,	 /* of one that does not claim, so all that it holds is its due */
	HYSTERESIS_PERCENT = 20, /* another amount is claimed if it differs by more */
};

/* No more slack is kept than makes readers wait so long. */
static const double WAIT_S = 0.05;

/* Returns a holder's part of the slack. */
static double part_of(const struct portion_facts *facts)
{
	return (double)facts->leaves / IDLE_PARTS / facts->holders;
}

/* Tells whether what readers ask for is more than that. */
static bool needs_much(const struct portion_facts *facts)
{
	return facts->need > 0 && fmax(facts->need, facts->least) > part_of(facts);
}

/* Tells whether the leaves that even readers need are worth having. */
static bool is_exact(const struct portion_facts *facts)
{
	return facts->is_even && facts->need >= facts->least;
}

/* Tells whether one token is saved up for the next reader: rule 3. */
static bool saves_one(const struct portion_facts *facts)
{
	double renewal_s = (double)facts->renewal_ns / NSEC_PER_SEC;
	bool is_slow = facts->need * facts->leaf * renewal_s < 1 && facts->room == 1;
	bool is_served = !facts->first && !facts->waiting && !facts->hunger;
	bool comes_late = facts->is_rare || (is_slow && !facts->is_young);
	bool is_fine = part_of(facts) >= 1 && facts->leaves / PIECES_LEAST >= facts->least;

	return facts->claims && facts->kept && facts->room && facts->leaf > 0 &&
	       needs_much(facts) && comes_late && is_served && is_fine && !is_exact(facts);
}

/* Tells whether it is there: one leaf stays, which is room for it. */
static bool has_saved_one(const struct portion_facts *facts)
{
	return saves_one(facts) && facts->token_ns <= facts->now_ns;
}

/* Tells whether nothing is kept between readers, if that were much: rule 3. */
static bool spares_rare(const struct portion_facts *facts)
{
	return facts->claims && facts->is_rare && !is_exact(facts);
}

/* Returns the leaves that are soon enough for rare readers that wait: rule 3. */
static double soon_of(const struct portion_facts *facts)
{
	double within_s = (double)(SOON_RENEWALS * facts->renewal_ns) / NSEC_PER_SEC;
	double least = (double)facts->leaves / IDLE_PARTS;

	if (facts->leaf <= 0 || facts->least > least)
		return facts->leaves;
	return fmax((double)facts->waiting / within_s / facts->leaf, least);
}

/* Returns what readers ask for: by rule 3 less where they are rare, and it is much. */
static double need_of(const struct portion_facts *facts)
{
	if (saves_one(facts))
		return has_saved_one(facts) ? 1 : facts->need;
	if (!spares_rare(facts) || !needs_much(facts))
		return facts->need;
	return facts->first ? fmin(facts->need, soon_of(facts)) : 0;
}

/* Returns the leaves that readers are to have at once that wait where nothing is held. */
static uint32_t first_needed(const struct portion_facts *facts)
{
	double soon = ceil(fmin(soon_of(facts), facts->leaves));

	return spares_rare(facts) && soon < facts->first ? (uint32_t)soon : facts->first;
}

/* Returns this host's part of the slack, less what is idle anyway. See rule 1. */
static double part_of_idle(const struct portion_facts *facts)
{
	double root = sqrt(need_of(facts)), tokens = need_of(facts) * facts->leaf;
	double part = facts->leaves * root / (root + facts->share.roots) / IDLE_PARTS;
	double anyway = sqrt(tokens) / ROOT_PARTS + tokens / DEMAND_PARTS;
	double by_chance = 2 * facts->chance * tokens / WAIT_S;
	double most = (sqrt(tokens * tokens + by_chance) - tokens) / 2;
	/* Of less than a token a second it is not known well. */
	double known = fmax(facts->chance, fmin(tokens, 1));

	return known * fmin(part - anyway / facts->leaf, most / facts->leaf);
}

static double least_slack_of(const struct portion_facts *facts)
{
	return (double)facts->leaves / SLACK_PARTS / facts->holders;
}

/* Returns the slack that this host may have while one is short. */
static double scarce_slack_of(const struct portion_facts *facts)
{
	double least = fmax(least_slack_of(facts), facts->ahead);

	if (has_saved_one(facts))
		return 0;
	if (saves_one(facts))
		least = fmax(least, (SAVING_TIMES - 1) * facts->need);
	if (facts->leaf <= 0 || need_of(facts) <= 0 || facts->is_young)
		return least;
	return fmax(least, part_of_idle(facts));
}

static double slack_of(const struct portion_facts *facts)
{
	if (facts->claims)
		return scarce_slack_of(facts);
	return fmax(least_slack_of(facts), need_of(facts) / PLENTY_PARTS);
}

static double with_slack(const struct portion_facts *facts, double slack)
{
	return need_of(facts) > 0 ? need_of(facts) + slack : 0;
}

/* Returns the slack that is claimed, as all claimants have it. */
static double claimed_slack_of(const struct portion_facts *facts)
{
	return fmin(scarce_slack_of(facts), slack_of(facts));
}

double portion_plain(const struct portion_facts *facts)
{
	return with_slack(facts, claimed_slack_of(facts));
}

double portion_most(const struct portion_facts *facts)
{
	return with_slack(facts, BAND_MOST * slack_of(facts));
}

static bool is_hungry(const struct portion_facts *facts, double slack)
{
	return facts->hunger > ceil(need_of(facts) + slack);
}

/* Returns how many leaves are worth having. */
static uint32_t least_of(const struct portion_facts *facts)
{
	return has_saved_one(facts) ? 1 : facts->least;
}

static uint32_t leaves_for(const struct portion_facts *facts, double amount)
{
	uint32_t leaves = amount < facts->leaves ? (uint32_t)ceil(amount) : facts->leaves;

	return leaves && leaves < least_of(facts) ? least_of(facts) : leaves;
}

/* Returns what is taken for the first readers: more than they need where much is free. */
static uint32_t first_of(const struct portion_facts *facts)
{
	uint32_t plenty = facts->free == facts->leaves ? facts->leaves : facts->free / FIRST_PARTS;
	uint32_t first = first_needed(facts);

	return first && plenty > first && !spares_rare(facts) ? plenty : first;
}

/* Returns what readers ask for, as far as it is known, with @slack. */
static uint32_t asked_of(const struct portion *portion, const struct portion_facts *facts,
			 double slack)
{
	double wanted = with_slack(facts, slack);

	if (facts->hunger > wanted)
		wanted = facts->hunger;
	if (facts->exact > wanted)
		wanted = facts->exact;
	if (facts->kept < facts->least && first_of(facts) > wanted)
		wanted = first_of(facts);
	/* A host that gets none cannot tell how much it could use: it asks for more and more. */
	if (is_hungry(facts, slack) && facts->is_unmet && facts->now_ns >= portion->claim_ns &&
	    wanted < 2.0 * facts->claimed)
		wanted = 2.0 * facts->claimed;
	return leaves_for(facts, wanted);
}

/* Readers that wait may not have been served yet: leaves that are held for them stay. */
static uint32_t wanted_of(const struct portion_facts *facts, uint32_t asked)
{
	uint32_t first = first_needed(facts);

	first = first < facts->kept ? first : facts->kept;
	return first > asked ? first : asked;
}

static uint32_t share_of(const struct portion_facts *facts)
{
	uint32_t share = facts->is_seen ? facts->share.target : UINT32_MAX;

	/* The leaf of a saved token is its holder's due. */
	return share || !has_saved_one(facts) ? share : 1;
}

/* Returns what is kept for readers to come while no host claims any: the next one finds as much. */
static uint32_t spare_of(const struct portion_facts *facts)
{
	uint32_t spare = facts->leaves / (facts->holders + 1);

	return facts->claims || need_of(facts) <= 0 ? 0 : spare - spare % facts->least;
}

/* Returns how many leaves are not too many. */
static uint32_t most_of(const struct portion_facts *facts)
{
	double most = portion_most(facts);
	uint32_t spare = spare_of(facts);

	if (is_hungry(facts, slack_of(facts)) || need_of(facts) <= 0)
		return spare;
	return most < facts->leaves ? most > spare ? (uint32_t)most : spare : facts->leaves;
}

/* Tells whether more is kept than @wanted, and more than is not too many, once some @gives go. */
static bool has_excess(const struct portion_facts *facts, uint32_t wanted, uint32_t gives)
{
	return facts->kept > most_of(facts) + gives && facts->kept > wanted + gives;
}

/* Tells whether @excess, which is not wanted, goes back. */
static bool may_give(const struct portion *portion, const struct portion_facts *facts,
		     uint32_t wanted, uint32_t excess)
{
	bool old = facts->now_ns - portion->excess_ns >= facts->lease_ns / YOUNG_PARTS;
	uint32_t parts = facts->is_young ? SURE_PARTS : PLAIN_PARTS;
	/* Slots that are open or waited for are counted; the need of readers is a guess. */
	bool is_counted = facts->exact && facts->exact >= wanted;
	bool plain = is_counted || excess > facts->kept / parts + PLAIN_LEAST;

	if (facts->claims)
		return old || plain;
	if (facts->saves)
		return false;
	return (old && facts->kept / 2 >= wanted) || (portion->is_first && !facts->first && plain);
}

/*
 * Returns how much of what is not wanted claimants may have now. Where none lacks much it is this
 * host's part of what they lack, at each look, and twice as much each time that they still do.
 */
static uint32_t answer_of(struct portion *portion, const struct portion_facts *facts)
{
	uint32_t lacks = facts->share.lacks, held = facts->leaves - facts->free;
	bool may_be_short = need_of(facts) > 0 && !has_saved_one(facts) && !facts->exact;
	bool same = facts->kept == portion->answered && facts->share.lacks == portion->lacked;
	uint64_t again_ns = same && portion->again_ns ? 2 * portion->again_ns : facts->renewal_ns;
	double part;

	if (!facts->claims || (facts->is_seen && facts->share.is_greedy) || !may_be_short)
		return UINT32_MAX;
	if (!facts->is_seen || facts->is_stale || portion->answered_ns == facts->listed_ns)
		return 0;
	portion->answered_ns = facts->listed_ns;
	portion->again_ns = 0;
	lacks -= lacks < facts->free ? lacks : facts->free;
	part = (double)facts->kept / (held > facts->kept ? held : facts->kept) * lacks;
	part = fmin(ceil(part * (1 << portion->answers)), facts->leaves);
	if (!lacks)
		portion->answers /= 2;
	else if (portion->answers < ANSWERS_MOST)
		portion->answers++;
	/* Another host may take leaves that are free now. */
	if (facts->share.lacks)
		portion->again_ns = again_ns < facts->lease_ns ? again_ns : facts->lease_ns;
	portion->answered = facts->kept;
	portion->lacked = facts->share.lacks;
	return (uint32_t)part;
}

/* Gives back what is not wanted. Returns whether it is only a part of that. */
static bool give_excess(struct portion *portion, const struct portion_facts *facts,
			struct portion_decision *decision)
{
	uint32_t most = most_of(facts), spare = spare_of(facts), excess, answer;

	if (!facts->claims || facts->share.is_greedy || facts->kept <= most) {
		portion->answers = 0;
		portion->again_ns = 0;
	}
	if (facts->kept <= most || facts->kept <= decision->wanted) {
		portion->excess_ns = 0;
		portion->is_first &= !facts->kept || facts->first;
		return false;
	}
	excess = facts->kept - (spare > decision->wanted ? spare : decision->wanted);
	if (!portion->excess_ns)
		portion->excess_ns = facts->now_ns;
	if (!may_give(portion, facts, decision->wanted, excess))
		return false;
	answer = answer_of(portion, facts);
	decision->gives = excess < answer ? excess : answer;
	return answer < excess;
}

/* Tells whether readers wait for the first token of what was taken: a turn yields one at least. */
static bool is_awaited(const struct portion_facts *facts)
{
	return facts->first && !facts->is_of_use;
}

/* A turn ends after its last token: a part of one that comes in behind that is of no use. */
static bool is_turn_over(const struct portion_facts *facts)
{
	uint64_t left_ns = facts->lease_ns;

	if (facts->saves_up)
		left_ns += facts->lease_ns / SAVING_PARTS;
	left_ns -= facts->turn_ns < left_ns ? facts->turn_ns : left_ns;
	if (!facts->share.starving || is_awaited(facts))
		return false;
	return !left_ns || facts->token_ns > facts->now_ns + left_ns;
}

/* Returns how far from @share is near enough: where shares are small, every leaf counts. */
static uint32_t near(const struct portion_facts *facts, uint32_t share)
{
	uint32_t of_all = facts->leaves / NEAR_PARTS, of_share = share / SHARE_NEAR_PARTS;

	return of_all < of_share ? of_all : of_share;
}

/* Returns how many leaves others leave to this host; UINT32_MAX: all. */
static uint32_t due_of(const struct portion_facts *facts)
{
	uint32_t share = facts->claims ? share_of(facts) : UINT32_MAX;

	if (share == UINT32_MAX)
		return share;
	if (is_turn_over(facts) && !has_saved_one(facts))
		return facts->share.target_behind;
	/* A piece that has not yielded a token yet stays. */
	return is_awaited(facts) && share < facts->least ? facts->least : share;
}

/*
 * Makes way for hosts that have less than their share. One that lacks a part of its own share that
 * matters to it gets that from whoever has too much, however little it is to that host.
 */
static void make_way(struct portion *portion, const struct portion_facts *facts,
		     struct portion_decision *decision)
{
	uint32_t due = due_of(facts), kept = facts->kept - decision->gives;
	uint32_t enough = facts->share.lacking ? 0 : near(facts, due);

	if (facts->now_ns < portion->give_ns || kept <= due || kept - due <= enough)
		return;
	decision->gives += kept - due;
	decision->turn_ends = is_turn_over(facts) && kept <= facts->share.target;
	portion->give_ns = facts->now_ns + facts->renewal_ns / GIVING_PARTS;
}

/*
 * Tells whether fewer are kept than are needed, with a part of @slack: chance is worth no more. It
 * is to readers that wait without a break.
 */
static bool is_short(const struct portion_facts *facts, uint32_t wanted, double slack)
{
	double needed = need_of(facts) + slack / BAND_PARTS;

	return wanted > facts->kept &&
	       (!facts->kept || facts->hunger > facts->kept || needed > facts->kept ||
		facts->exact > facts->kept || facts->kept < least_of(facts));
}

/*
 * Claims what readers ask for, and little slack: a host that claimed more would take from others
 * what they need a moment later. Leaves that are only kept for readers that wait may go at any
 * time.
 */
static void choose_claim(struct portion *portion, const struct portion_facts *facts,
			 struct portion_decision *decision)
{
	double slack = claimed_slack_of(facts);
	uint32_t asked = asked_of(portion, facts, slack);
	uint32_t now = facts->claimed, share = share_of(facts), claim = 0, more;

	if (((facts->is_unmet || now) && is_short(facts, asked, slack)) || share < asked)
		claim = asked;
	more = claim > now ? claim - now : now - claim;
	decision->claim = claim;
	if (!now)
		decision->claims = claim;
	else if (facts->now_ns >= portion->claim_ns || claim / 2 >= now)
		decision->claims = !claim || decision->turn_ends || facts->parts_differ ||
				   (claim > now && facts->kept >= now) ||
				   (uint64_t)more * 100 > (uint64_t)now * HYSTERESIS_PERCENT;
	/* A claim above its share is the same as a larger one. */
	if (claim && now && !decision->turn_ends && !facts->parts_differ && share < claim &&
	    share < now)
		decision->claims = false;
	if (decision->claims)
		portion->claim_ns = facts->now_ns + facts->renewal_ns;
}

/*
 * Tells whether claims of others concern this host: its share is less than it wants, or it has more
 * than an equal part would be with one host more.
 */
static bool has_stake(const struct portion_facts *facts, uint32_t wanted)
{
	return share_of(facts) < wanted || facts->kept > facts->leaves / (facts->holders + 1);
}

/* Returns how many more leaves this host should have. */
static uint32_t lack_of(const struct portion_facts *facts, uint32_t wanted)
{
	uint32_t share = share_of(facts), limit = wanted < share ? wanted : share;

	if (!is_short(facts, wanted, slack_of(facts)) || limit <= facts->kept)
		return 0;
	return limit - facts->kept;
}

/* Tells whether a reader waits whom the leaves that are kept do not serve soon. */
static bool is_slow(const struct portion_facts *facts)
{
	return facts->waits_here && facts->first > facts->kept;
}

/* Returns how many are taken: while no host claims any, enough that it is the last time. */
static uint32_t taken_of(const struct portion_facts *facts, uint32_t wanted)
{
	uint32_t lack = lack_of(facts, wanted), spare = spare_of(facts);
	uint32_t most = facts->kept + facts->free / FIRST_PARTS;

	spare = spare < most ? spare : most;
	return (lack || is_slow(facts)) && spare > facts->kept + lack ? spare - facts->kept : lack;
}

/* Tells whether so much is needed and lacking that it is looked for again and again. */
static bool is_lacking(const struct portion_facts *facts, uint32_t wanted)
{
	uint32_t lack = lack_of(facts, wanted);

	return lack && is_short(facts, wanted, claimed_slack_of(facts)) &&
	       (!facts->kept || lack > near(facts, share_of(facts)));
}

/*
 * Returns how long after a look the next one may be because claims have changed. A host that lacks
 * leaves may find some, and one with a stake may help others, at once; the others only learn how
 * much slack they may keep. Where none lacks much, a host that has little more than its part helps
 * soon enough after R.
 */
static uint64_t spacing_ns(const struct portion_facts *facts, uint32_t wanted)
{
	uint32_t lack = lack_of(facts, wanted), equal = facts->leaves / (facts->holders + 1);
	bool hurries = has_stake(facts, wanted) || lack;

	if (facts->is_seen && !facts->share.is_greedy && !lack &&
	    facts->kept <= equal + equal / MODEST_PARTS &&
	    (hurries || has_excess(facts, wanted, 0)))
		return facts->renewal_ns;
	return hurries ? facts->renewal_ns / GIVING_PARTS : facts->lease_ns / YOUNG_PARTS;
}

/*
 * Tells whether leaves that came free are looked for at once: twice in a row, and once every R
 * in the long run. A host that leaves deletes its claim first, and a look because of that finds
 * nothing yet; and while shares are still being settled each give-back is followed by another.
 */
static bool is_woken(struct portion *portion, const struct portion_facts *facts)
{
	if (!facts->is_woken ||
	    portion->woken_ns > facts->now_ns + (WOKEN_LOOKS - 1) * facts->renewal_ns)
		return false;
	if (portion->woken_ns < facts->now_ns)
		portion->woken_ns = facts->now_ns;
	portion->woken_ns += facts->renewal_ns;
	return true;
}

static void choose_look(struct portion *portion, const struct portion_facts *facts,
			struct portion_decision *decision)
{
	bool concerns = facts->kept || facts->claimed, wakes;
	uint32_t wanted = decision->wanted;

	if (!decision->gives)
		decision->takes = taken_of(facts, wanted);
	if (facts->is_looking || facts->is_claiming)
		return;
	/* Leaves that came free are of no use to a host that lacks none. */
	wakes = facts->is_woken && facts->kept < wanted;
	if (concerns && (facts->is_stale || wakes || (facts->claims && !facts->is_seen)))
		decision->looks = facts->now_ns >= facts->listed_ns + spacing_ns(facts, wanted) ||
				  (wakes && is_woken(portion, facts));
	if (decision->takes && !facts->is_unmet)
		decision->looks = true;
	if (portion->look_ns == NEVER_NS && is_lacking(facts, wanted))
		decision->looks = true;
	/* Claimants had a part of what is spare: do they still lack some? */
	if (portion->again_ns && has_excess(facts, wanted, decision->gives))
		decision->looks |= facts->now_ns >= facts->listed_ns + portion->again_ns;
	/* Leaves may have come free meanwhile. */
	if (is_slow(facts) && facts->kept < spare_of(facts))
		decision->looks |= facts->now_ns >= facts->listed_ns + facts->lease_ns;
	if (decision->takes || (facts->claims && concerns))
		decision->looks |= facts->now_ns >= portion->look_ns;
	/* Others wait for this host if its claim comes first, also where its reader is gone. */
	if (facts->lost_claim)
		decision->looks |= facts->now_ns >= facts->listed_ns + facts->renewal_ns;
}

uint64_t portion_looked(struct portion *portion, const struct portion_facts *facts)
{
	uint32_t share = facts->share.target, before = portion->share;
	uint32_t change = share > before ? share - before : before - share;
	uint32_t wanted = wanted_of(facts, asked_of(portion, facts, slack_of(facts)));
	bool same = !has_stake(facts, wanted) ||
		    (change <= near(facts, share) && facts->holders == portion->holders);

	portion->share = share;
	portion->holders = facts->holders;
	portion->look_every_ns = same ? portion->look_every_ns * 2 : facts->renewal_ns;
	if (!portion->look_every_ns)
		portion->look_every_ns = facts->renewal_ns;
	if (portion->look_every_ns < facts->lease_ns)
		return portion->look_every_ns;
	portion->look_every_ns = facts->lease_ns;
	return facts->is_watched && !is_lacking(facts, wanted) ? NEVER_NS : facts->lease_ns;
}

/* Keeps leaves whose slots are open, and opens no more of those that are to go. */
static void keep_open(const struct portion_facts *facts, struct portion_decision *decision)
{
	uint32_t most = facts->kept > facts->in_use ? facts->kept - facts->in_use : 0;
	uint32_t due = due_of(facts);

	decision->yields = facts->in_use > due ? due : UINT32_MAX;
	if (decision->gives <= most)
		return;
	decision->gives = most;
	decision->turn_ends = decision->turn_ends && most;
}

void portion_decide(struct portion *portion, const struct portion_facts *facts,
		    struct portion_decision *decision)
{
	uint32_t asked = asked_of(portion, facts, slack_of(facts));
	bool is_part;

	*decision = (struct portion_decision){.wanted = wanted_of(facts, asked)};
	is_part = give_excess(portion, facts, decision);
	make_way(portion, facts, decision);
	keep_open(facts, decision);
	choose_claim(portion, facts, decision);
	choose_look(portion, facts, decision);
	if (decision->gives && !is_part) {
		portion->excess_ns = 0;
		portion->is_first = false;
	}
	if (decision->takes && !facts->kept && facts->first)
		portion->is_first = true;
}

/* Returns in how many claims of @line @child has a part. */
static uint32_t count_wanting(const struct claim_line *line, uint64_t child)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < line->count; i++) {
		for (uint32_t j = 0; j < line->claims[i].part_count; j++)
			count += line->claims[i].parts[j].child == child;
	}
	return count;
}

/*
 * Rounds the claims of @line, and their parts, up to pieces of @least. There are fewer pieces than
 * hosts, which take turns: each has an equal part of a child's min, also while it has no piece.
 */
static struct share weigh_pieces(const struct claim_line *line, const struct claim *own,
				 uint32_t leaves, uint32_t least)
{
	struct share share;

	for (uint32_t i = 0; i < line->count; i++) {
		struct claim *claim = &line->claims[i];

		claim->wanted = (claim->wanted + least - 1) / least;
		claim->held /= least;
		for (uint32_t j = 0; j < claim->part_count; j++) {
			claim->parts[j].wanted = (claim->parts[j].wanted + least - 1) / least;
			claim->parts[j].min = (claim->parts[j].min + least - 1) / least;
		}
	}
	share = share_weigh(line, 0, leaves / least);
	share.is_greedy = true;
	for (uint32_t i = 0; i < own->part_count; i++) {
		struct part *part = &own->parts[i];

		part->least = part->min ? 1 : 0;
		part->min = part->min ? count_wanting(line, part->child) : 0;
	}
	if (share.target == UINT32_MAX)
		return share;
	share.target *= least;
	share.target_behind *= least;
	return share;
}

/* Notes in @share what other hosts of @line claim and lack. */
static void note_lacks(const struct claim_line *line, uint32_t leaves, struct share *share)
{
	for (uint32_t i = 0; i < line->count; i++) {
		const struct claim *claim = &line->claims[i];
		uint32_t lack = claim->wanted > claim->held ? claim->wanted - claim->held : 0;

		if (claim->sequence == line->own || claim->is_due)
			continue;
		share->lacks += lack < leaves - share->lacks ? lack : leaves - share->lacks;
		share->is_greedy |= lack > (leaves - claim->held) / GREEDY_PARTS;
	}
}

/* Sums up what other hosts of @line hold that get all they want: they have slack, too. */
static double roots_of(const struct claim_line *line, const struct share *share)
{
	double roots = 0;

	for (uint32_t i = 0; i < line->count; i++) {
		const struct claim *claim = &line->claims[i];
		bool is_short = share->target != UINT32_MAX && claim->gets < claim->wanted;

		if (claim->sequence != line->own && !is_short)
			roots += sqrt(claim->is_due ? claim->wanted : claim->held);
	}
	return roots;
}

struct share portion_weigh(struct claim_line *line, const struct holder *holders, uint32_t count,
			   const struct claim *own, uint32_t leaves, uint32_t least)
{
	uint32_t rest = leaves;
	struct share share;
	uint64_t last = 0;

	for (uint32_t i = 0; i < line->count; i++) {
		struct claim *claim = &line->claims[i];

		last = claim->sequence > last ? claim->sequence : last;
		if (claim->sequence != line->own)
			continue;
		claim->wanted = leaves;
		claim->parts = own->parts;
		claim->part_count = own->part_count;
	}
	/* A holder without a claim is behind all that have one. */
	for (uint32_t i = 0; i < count; i++) {
		if (holders[i].claims || !holders[i].leaves)
			continue;
		/* A host with a token saved up has no piece of its own. */
		if (holders[i].leaves < least) {
			rest -= holders[i].leaves;
			continue;
		}
		line->claims[line->count++] = (struct claim){
			.wanted = holders[i].leaves,
			.weight = HOLDER_WEIGHT,
			.sequence = ++last,
			.is_due = true,
		};
	}
	if (line->own == UINT64_MAX) {
		line->own = last + 1;
		line->claims[line->count++] = (struct claim){
			.wanted = leaves,
			.weight = own->weight,
			.sequence = line->own,
			.parts = own->parts,
			.part_count = own->part_count,
		};
	}
	if ((uint64_t)line->count * least > leaves)
		return weigh_pieces(line, own, leaves, least);
	share = share_weigh(line, 0, rest);
	share.roots = roots_of(line, &share);
	note_lacks(line, leaves, &share);
	return share;
}
