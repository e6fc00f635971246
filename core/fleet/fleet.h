/*
 * fleet - the lease protocol of one host.
 *
 * A fleet's hosts share each limiter's capacity by leasing its leaves from one another through a
 * coordinator (coordinator.h). No two hosts are ever entitled to one leaf, whatever happens to
 * processes, clocks, links and servers.
 *
 * NODES
 *
 *	/v			layout version
 *	/g			constants, the last limiter's id, the last changes; its version
 *				counts changes of settings, and every host watches it
 *	/c/LID			a limiter: name, parent, generation, settings, and `cut`, the
 *				generation since which its leaves are numbered as they are; or, for
 *				Q at least, a name that limiter `removed` had
 *	/h/HID			ephemeral, one a session; its version counts transactions.
 *				Nothing rests on what it says of the use of limiters: uses.h;
 *				on its caps does what others take after its end: caps.h
 *	/d/HID+E		the right of that host is over: since epoch E at the latest. Its
 *				data: the last caps of the host (20)
 *	/t/LID-CUT/A-B+E+S:L	leaves A to B are free and clean: tile.h
 *	/t/LID-CUT/A-B.HID	they are leased by that host
 *	/r/LID-CUT/...		the same of the reserve: a leaf is the part of one host
 *	/a/LID			its data: the agreed rate (agreed_rate.h)
 *	/w			its data: of which limiters services told quotas (told.h)
 *	/w/LID			its data: those that hold (21)
 *	/w/LID/HID-N-W-SEQ	ephemeral: a host of weight W wants N leaves; before SEQ follows
 *				what children of the limiter want of them, if any do: znode.h
 *
 * RULES
 *
 *  1. One session a host. With a new session, or when its /h node is gone, a host drops everything
 *     first and then gives itself a new HID.
 *  2. Every change is one transaction: check /g at the version applied, set /h/HID at the version
 *     known, and then what it is for. One is under way at a time. The time is taken before it is
 *     sent.
 *     Reason: without the version of /h a stray, or a history that was lost, could take a tile for
 *     a host that does not know of it. Exact names alone do not suffice.
 *  3. Only an acknowledged transaction extends the right: right_end = max(right_end, sent + D). It
 *     is for everything that is held. A right that has lapsed may revive in the same session. If it
 *     had lapsed when the acknowledgement was received, and that is of a later epoch than the one
 *     that extended the right last, everything held or waited for is usable Q after this host first
 *     knew the new epoch, and no sooner.
 *     Reason: an election may have taken back that a neighbour ended this right (10).
 *  4. A tile is used only while it is held and now < right_end, checked in each step before
 *     anything is granted.
 *  5. A transaction with nothing but checks (12) renews the right every R while anything is held,
 *     or claimed.
 *  6. A tile changes only in a transaction that deletes nodes by their exact names and creates
 *     nodes for the same leaves. Only free tiles, one's own and those of hosts that are gone are
 *     split; only free ones, and one's own that are usable, are merged. Free ones merge with the
 *     older epoch, and their rests add up.
 *     Reason: names are the state. No version can repeat, a list may be as old as it likes, and a
 *     refused transaction has changed nothing.
 *  7. Taking a clean tile: it is deleted, one's own is created for the leaves that are wanted, and
 *     a clean one of the same E for the rest. If E is the epoch of the acknowledgement it is usable
 *     at once, with its rest. Else it is usable Q after this host first knew the epoch of the
 *     acknowledgement, and empty. E 0 is no epoch: usable Q after the acknowledgement.
 *     Reason: an election may have taken back the take of a host that uses the tile, and what it
 *     has spent: the name is there again as if nothing had been.
 *  8. Taking from a host X that is gone: A-B.X is deleted, one's own is created, and A'-B'.X for
 *     the rest; either with a check of /d/X+E: then it is a clean tile of epoch E, and empty; or
 *     with a create and a delete of /h/X, which asserts that X is gone: usable Q after this host
 *     first knew that, in the epoch of the acknowledgement. It knows it by a read without /h/X
 *     after it saw X by any name, or by the acknowledgement.
 *  9. Giving back: use stops, then the tile is deleted, and a clean one created with the epoch E of
 *     the acknowledgement that extended this host's right last, and with its part of the buckets
 *     (18). A tile that is not usable yet is not given back. A host that leaves lets it be: the
 *     next one takes it from a host that is gone.
 * 10. The neighbour. A host's node says whether it renews its right: while it holds or claims
 *     anything, and the transaction that begins with that says so itself. These hosts are a ring in
 *     the order of /h. Each reads the version of the next one's node every R. If Q after the
 *     receipt of a version, by the waiter's clock, it is the same, one transaction deletes /h/X at
 *     that version and creates /d/X+E, with the epoch of the last transaction of this host that was
 *     acknowledged before that read was sent. The count begins anew when this host's own right has
 *     lapsed meanwhile, or the epoch changed. After two reads that showed nothing new, which is 2
 *     R, X's successor in the ring is counted, too: k dead in a row cost Q + 2 R k at most. Hosts
 *     that renew nothing are passed over and watched. X finds its node gone (1): so it is at its
 *     next transaction, and its right is over by its own clock before.
 *     T is above Q + 3 R: a session that ends sooner costs another Q, since only then it is known
 *     that X is gone. Claims of a host that is gone do not count. In a new epoch hosts list /h and
 *     /d anew: an election brings hosts back, and takes ends back, without a word of it. /d/X is
 *     deleted 25 hours later: a missing one costs waits, and what X had left of windows.
 *     Reason: D after X sent its last acknowledged transaction the right of X was over, and that
 *     was before the read that showed that version; D by X's clock is less than Q by this host's.
 *     So it is over for all that X holds, whatever that is. The version in the transaction says
 *     that X has written nothing since. An election may have taken back a later write of X, which
 *     gave it a right: hence E, and a host that takes a tile of X in a later epoch waits (7). E
 *     must not be the epoch in which /d is made, which may be younger than the read. An election
 *     may also take back the end itself, and what was taken by it: hence the wait of 3.
 * 11. After an unknown outcome the leases that it was about are not usable, and nothing else is
 *     sent before a barrier: the version of /h is read, and a transaction with it acknowledged,
 *     which extends no right, since it does not check /g. No older request can be executed then.
 *     The tiles of the limiters in doubt are listed: those with this host's name are its own, and
 *     leases in doubt that are in them are usable Q later; the others are not held. A successor, to
 *     whom nothing was answered, begins so (handover.h): a process that was killed and the one that
 *     goes on in its place are one host, whose every unanswered transaction is an unknown outcome.
 * 12. A version of /h that is neither the one known nor, after an unknown outcome, the next is a
 *     history that was lost, or a foreign hand; so is a tile of one's own that is not there:
 *     everything is dropped, and a new session begun. A host finds that by the transactions that
 *     delete its tiles, and each renewal checks some of them, all in turn. Lists say nothing of
 *     one's own tiles: they may be from before the last answer.
 *     A list may also be torn, since a server may read while it writes. Leaves that are in no tile
 *     in two lists R apart were deleted by a foreign hand: a change of the limiter's `cut` lays all
 *     of them anew (17).
 *     Another version of /g: the new settings are applied, then it is tried again; a renewal
 *     within R/32. After changes in a row for R/2, of all hosts together, none is sent before /g
 *     has stood still for R/8, or for four answers of the last change up to R/2: in that time all
 *     hosts renew their rights.
 *     A /g that was written in another epoch than the one applied: all limiters are read, and each
 *     whose node another write made as it is counts as changed; one whose node was made by another
 *     write and has another name is another limiter.
 *     Reason: an election may take back changes, and later ones get the same versions and ids.
 * 13. A connection is given up when an answer takes too long: longer than twice the slowest answer
 *     of the last 30 to 60 s, and than ANSWER_NS, and four times that for each connection given up
 *     since the last answer. An answer that did not come in time counts among the slow ones: a
 *     coordinator that is slow now and then would lose one connection after another. Time in which
 *     this host itself did not run, so that what it had to do was 0.1 s late or more, does not
 *     count, up to 10 s: an answer may lie there unread. So a dead link is noticed soon where the
 *     coordinator was quick, and a slow coordinator is used all the same. The wait is never longer
 *     than T/2, nor than (D - 1.25 R) / 2: a renewal that takes longer ends after the right does
 *     that the one before it gave; nor than 10 s; and where these are less than ANSWER_NS, it is
 *     ANSWER_NS. A session is given up after a minute in which no transaction was acknowledged and
 *     the host had something to write, whether there were connections or not: the session itself
 *     may be the reason why requests are not answered. After two sessions in which the host could
 *     not join there is a pause that grows.
 * 14. A limiter that is made: its tiles are made with it, of the epoch of its maker's last
 *     acknowledged transaction, since its id is new and no host can have used it. If an election
 *     lies between, the first take waits. S is the generation 1, and no amounts follow: nothing was
 *     taken of any limit.
 * 15. Leaving: use stops, the host's claims are deleted, everything usable of which no slot is open
 *     is given back, the session is closed. Tiles that a transaction under way takes are given back
 *     next. Of a tile with open slots programs go on with their work: the next host takes it from a
 *     host that is gone, and waits for Q. A limiter that is closed is left likewise, but leaves
 *     whose slots are open stay until they are not.
 * 16. A limiter that is made within Q of another one's having its path, or a path above it, is made
 *     with tiles of epoch 0; a limiter that is there is not renamed to such a path, nor back to its
 *     own with limiters in it, whose paths others may have had. The record of a limiter that is
 *     removed stays until its nodes are swept and says so, and a rename leaves such a record under
 *     an id of its own, so that all hosts know the paths, also those that come later. A limiter
 *     whose nodes were deleted by hand leaves no record: the hosts that had it know its path, their
 *     successors do not, and all that a successor makes within Q has tiles of epoch 0.
 *     Reason: a host that is cut off does not hear of it and grants by the old limiter until its
 *     right ends. It has a right only from before, so Q from hearing of it is enough, and a take of
 *     epoch 0 waits as long (7). A path that no limiter had does not wait.
 * 17. Leaves. A limiter has as many as `partitions.count`, and leased tiles are then single leaves;
 *     with `auto` as many as slots, or as tokens in a strict window, if there are fewer than 4,096,
 *     else 4,096, whatever its rate. A
 *     change of their number, or of the reserve, sets `cut` to its generation, and makes /t/LID-CUT
 *     with one clean tile of epoch 0 for all leaves. Hosts that hear of it drop what they hold of
 *     the limiter; nothing of the new folder is usable before Q after the acknowledgement of a take
 *     (7), by when every right under the settings before is over. Where no host can have used
 *     leaves within Q, since nothing was limited, the tile is of the epoch of rule 14: where
 *     nothing is limited a host gives its leaves back, and those that wait for Q do not become
 *     usable while it is cut off. Where all tiles before are clean the change deletes them by their
 *     names, as a merge does (6), and the tile has their oldest epoch and what was left in all. The
 *     folder before is swept Q later. So hosts under different settings share the leaves of one
 *     cut, each of which one host uses, and together use no more than the largest of these rates
 *     and bursts.
 *     With windows of the calendar of fewer than 256 tokens each token is a leaf.
 * 18. Tokens go with a tile that is given back, and come with one that is usable at once. Its part
 *     is at most its share of the burst. After any other take and after a lapse the bucket is
 *     empty, and where nothing is held it has no room, since all of the burst may be with others. L
 *     counts as long as the limits and their bursts are those that it was written under; after that
 *     only a debt does. The record's `saved` is the generation since which they are so, and S
 *     repeats it.
 *     Reason: all rests of one such time and the buckets together hold at most the burst. A rest of
 *     another time was not emptied when the burst was spent. A rate alone changes no burst, and
 *     where nothing was limited nothing was spent: neither begins a new time. Where a limiter is
 *     closed a bucket stays that of the leaves until they are given back, so that L is right.
 *     Of a strict window L is what is free in it. The host that takes the tile counts all the rest
 *     of its share as taken then. Another window, with the same number, begins a new time.
 *     Reason: each token that was granted by the tile's holder before is older than the take, so no
 *     window that it is in ends after one in which the taken share counts.
 * 19. Windows of the calendar. A leaf is worth an equal part of a window's tokens. A host is in a
 *     window by its own wall clock, and a window is known by its beginning. L is what was used of
 *     the last window of which leaves were used, and when that began. To a host that takes them
 *     with their rest they are worth, in that window, the rest of it; in a later one all; and in an
 *     earlier one, since the host before had a clock that was ahead, nothing. That host then goes
 *     by L in the next window, if L is of it. Of tiles that are merged the later window counts. A
 *     host that knows of a use of the next window gives back that, and one that lost count all.
 *     After any other take leaves are worth nothing in the window that the host is in, and all from
 *     the next on; so they are where L is of no window that a clock can know yet, and under another
 *     `saved`. A lapse of the right keeps what is left. Another number of tokens begins no new
 *     time, and changes what is left by the difference, but for leaves that are worth nothing in
 *     the window: they stay so, go back last, and then with a use that is not known. A host that
 *     has such leaves tells no cap of the limit. Other windows begin a new time.
 *     Reason: for a leaf each window that any host has used it in is the one in L, or one before
 *     it. So all leaves together grant no more than the number in a window, whatever the clocks of
 *     hosts show, where rests are passed on. After any other take that holds where clocks differ by
 *     less than Q - D: the last use was so long before, and was of no window that has not begun by
 *     the clock of the host that takes. With clocks further apart, or put back by more, leaves of
 *     a dead host may be used twice in one window that begins meanwhile; never all of them.
 * 20. Caps. A transaction of a host says how much the host uses at most of a window of the calendar
 *     by all leaves of a limiter that it has, where all of them are usable: the cap. From the
 *     sending on it uses no more than that, and no more than it told before; when the transaction
 *     is acknowledged it may use as much as that said, and where that said nothing, anything. Of
 *     the next window it uses nothing before it told a cap of that. The use that goes with leaves
 *     which are given back (19) is taken off the cap; where leaves were taken or given back since
 *     the sending it uses nothing until it told another. A successor, which does not know the caps,
 *     uses nothing before its first acknowledgement. The host that ends X (10) writes into /d/X+E
 *     the caps of the version of /h/X that it deletes. To a host that takes leaves of X by that,
 *     all in epoch E, in which X told the cap, too, they are worth what is left above their part of
 *     the cap; in other epochs, and without a cap, nothing in this window (19).
 *     Reason: X was acknowledged nothing after the version that was deleted, or an election lies
 *     between. If that version was not acknowledged to X, X used no more than it says, either. And
 *     whatever X used of its leaves together: the parts of the cap that go with them add up to no
 *     less. Charges count when they are told: one that came after the last cap is lost with X.
 *
 * 21. Quotas that a service tells. A host that hears how much is left keeps to its part of that
 *     report at once, and tells it in /w/LID when the node has been the same for a second. Hosts
 *     watch that node while they hold leaves, and read it as they begin to. So a report counts on
 *     all hosts within a renewal and a second; where a host has no room for the watch, within 5
 *     s. Where several hosts tell, each waits for its turn. A host's part of the tokens is that
 *     of the leaves that it has when it hears the report, rounded down. A leaf takes its part
 *     along: so a host gives back no more leaves than its tokens that are left come to, and
 *     leaves that come with their rest bring their part. Leaves that come otherwise, or that were
 *     lost, bring nothing of the reports that their host before may have known. A host that
 *     leaves lets be what it may not give back. With another `cut` nothing is left of the
 *     reports.
 *     Reason: the grants of a host since it heard a report are no more than the part of leaves
 *     that it has or has lost, and each leaf is one host's. So all hosts together grant no more
 *     than was reported since each has heard it, whatever moves. Grants of others need not be
 *     known. Less than a token of each host is lost by rounding; and until the reset all that
 *     hosts had left that died. No report is ever raised: each bounds by itself.
 *
 * WHY IT IS SAFE
 *
 * Let A have used a leaf, and B be entitled to it next. A's last right for it came from an
 * acknowledged transaction, which wrote A's /h at the version before. A's name goes from the leaf
 * only in three ways, and B's take names what it finds, so it succeeds only after that.
 *
 * A gave it back. It had stopped before (9), and its tile says by E in which epoch it still wrote.
 * If B's take is of that epoch no election lies between, the give-back stands, and B may begin at
 * once. If not, the take of another host after A may have been taken back; it had a right from
 * before that election only, so Q after B first knew of the later epoch that right is over, too.
 *
 * A's session ended, and B asserts that /h/A is not there: A's last acknowledged transaction was
 * sent, in true time, before B knew so. A stops D after that sending by its holder's clock, and B
 * begins Q = 1.01 D + 0.25 s after knowing it by its waiter's clock: with clocks within 0.5 % of
 * true time, A is first.
 *
 * A neighbour ended A's right: it saw one version of /h/A for Q, so no transaction of A's was
 * acknowledged that was sent in the last D, and deleting /h/A at that version keeps A from any
 * other. The rest is as with a tile that was given back in epoch E.
 *
 * In between tiles are split and merged. Their leaves keep their state, and of two epochs the older
 * one. An epoch that is older than need be only ever causes a wait.
 *
 * The rules, and what follows from leaving one out, are searched state by state in tests/model. One
 * thing they do not cover: an election that takes back the very close of a session (servers that
 * lose acknowledged writes, a restored backup) while the right of its host lasts. It does not last
 * that long where T is above Q.
 *
 * Nodes of other hosts are set only to wake them (their claims), a host that leaves deletes its own
 * claims, quotas are told, and folders that were deleted by hand are made again: those transactions
 * have no head, and of leases nothing rests on them.
 *
 * CHOOSING
 *
 * A limiter with `count auto` has 4,096 leaves without numbers, and is shared by portions
 * (portion.h): each host keeps what its readers ask for, and some slack. A limiter with a number in
 * `count` is shared in whole partitions (balance.h). Either is a pure function of recorded facts.
 *
 * A host that lacks something lists the tiles and takes free ones. If there are not enough, it
 * makes a /w node, its claim. All who see the same claims compute the same shares, by max-min
 * fairness (share.h), and hosts above theirs give back. Where a limiter has children its claims
 * say what each of them wants, and shares follow the order among them over all hosts (division.h):
 * so a host gives way at once to a child of a higher class on another one, and what each child has
 * on a host is its part of that (wants.h). This is exact for tokens of the children of a limiter
 * that hosts share, to within a leaf, or a piece worth having; where more than PARTS_OF_CHILDREN
 * children want some on a host, the others count by class; keys and partitions count as the own
 * queue. The parts of a child go to its own children on each host by itself where the child has no
 * leaves of its own. Slots are divided among hosts alone. Each host that holds something watches
 * /w/LID, so it is told when another comes to want some; it looks up to DEMAND_PERIOD_NS later,
 * and nothing is listed where claims stay as they are. Without room for the watch it looks every
 * third of `lease`. A host that gives back what others claim sets the data of claims, which wakes
 * their hosts. Another N in a claim costs its place in the line, so a claim is left as it is where
 * that would change no share. Where there are more hosts than pieces worth having, a host goes to
 * the end of the line when its turn of a `lease` is over. The turn is an eighth of `lease` longer
 * while a reader saves up for a take.
 *
 * While a transaction is under way more limiters come to have something to give back, to take or
 * to claim. The next one has all of that of one kind that fits, so a host with many limiters is
 * not late where answers take long. Takes begin with one limiter, and each success doubles them. A
 * take that other hosts were first at is sent again without the limiter that it was refused for;
 * each refusal halves the limiters of the next one.
 *
 * A wait for Q goes on though its leaves are not wanted any more: the next host would begin it
 * anew. A reader needs tokens of its limiter and of all that this one is in. A host looks for all
 * of them at once. Where others claim, it wants leaves of a limiter only when a reader needs
 * nothing more from below: two hosts would else keep what each other's readers wait for. A host
 * that found all of a reserve leased, and wants nothing else, looks again when it sees that a host
 * has gone, and once a minute. A host that is alone takes all.
 */
#ifndef RATEFS_CORE_FLEET_H
#define RATEFS_CORE_FLEET_H

#include "core/fleet/coordinator.h"
#include "core/limiter/engine.h"
#include "core/limiter/holding.h"
#include "core/fleet/handover.h"
#include "core/fleet/record.h"
#include "core/fleet/times.h"

enum {
	/*
	 * Of one host, in all limiters: the closing transaction of its session holds the paths of
	 * all its ephemeral nodes, and a session that goes to another server sets all its watches
	 * in one request. Each path counts with PATH and 4 bytes for its length. The bounds on
	 * bytes together are half of what a ZooKeeper server takes in one request by default,
	 * 1,048,575. A host that has reached one takes and claims no more, and goes on with what it
	 * has. Tiles outlive the session and are not watched; their bound is that of the handover.
	 */
	FLEET_LEASES_MAX = 10000,
	FLEET_OWN_BYTES_MAX = 262144, /* paths of its claims and its host node */
	FLEET_AGREED_RATE_BYTES_MAX =
		131072,			 /* of the /a/LID that it watches; the others it reads */
	FLEET_CLAIMS_BYTES_MAX = 131072, /* of the /w/LID that it watches; the others it lists */
};

/* The options of this host. */
struct fleet_options {
	const char *host;		  /* borrowed */
	uint32_t weight;		  /* 1 to 1000 */
	struct fleet_constants constants; /* for a fleet that is made now */
	struct handover_memory *handover; /* borrowed: for a successor; NULL: there will be none */
};

enum fleet_state {
	FLEET_CLOSED,	  /* no session */
	FLEET_CONNECTING, /* a session is being opened */
	FLEET_PREPARING,  /* the layout is looked at, or made */
	FLEET_LOADING,	  /* settings are read */
	FLEET_JOINING,	  /* the host's node is being made */
	FLEET_READY,	  /* leases can be taken */
	FLEET_IN_DOUBT,	  /* a barrier is under way after an unknown outcome */
	FLEET_REFUSED,	  /* the layout is another version's, or access is denied */
	FLEET_STATE_COUNT
};

/* Counted since the start; for status, metrics and the simulator. */
struct fleet_counters {
	uint64_t transactions;
	uint64_t reads;
	uint64_t lists;
	uint64_t renewals;
	uint64_t taken_clean, taken_unclean, given_back, conflicts;
	uint64_t sessions;
	uint64_t lapses;      /* of the right */
	uint64_t unknown;     /* outcomes */
	uint64_t late_grants; /* that were on their way when the right ended: of one step at most */
	uint64_t ended;	      /* rights of other hosts, by this one */
	uint64_t left_out;    /* takes and claims that there was no room for */
};

/* The table of them, in order: names, and what metrics says of them. */
enum { FLEET_COUNTER_COUNT = 14 };
const char *fleet_counter_name(size_t index);
const char *fleet_counter_help(size_t index);
uint64_t fleet_counter(const struct fleet_counters *counters, size_t index);

struct fleet;

/* Events of the host. */
enum fleet_event {
	FLEET_JOINED,
	FLEET_DROPPED,	/* the session */
	FLEET_LAPSED,	/* the right */
	FLEET_DEGRADED, /* out of reach of the coordinator for longer than the right went */
	FLEET_BACK,	/* ... no longer */
	FLEET_HUNG_UP,	/* a connection without answers was given up */
	FLEET_DENIED,	/* the coordinator denies access */
	FLEET_UNFIT,	/* the layout does not let it join */
	FLEET_FULL,	/* no room for more leases */
	FLEET_ENDED,	/* the right of another host */
	FLEET_SPOILT,	/* a node of the settings cannot be used */
};

/* Changes of a limiter by another host. */
enum fleet_applied {
	FLEET_MADE,
	FLEET_REMOVED,
	FLEET_RENAMED,
	FLEET_OWNED, /* owner or access */
	FLEET_SET,   /* a setting */
};

/* A slot that is open on this host; @slot.held_s is worked out when it is told. */
struct held_slot {
	struct host_slot slot;
	uint64_t opened_ns; /* by the engine's clock */
};

/* Hears what happens; with each event a line of words for its reader. Must not call back. */
struct fleet_listener {
	void (*event)(struct fleet_listener *listener, enum fleet_event event, const char *text);
	/* A change of state of @lease, a lease of leaves or the reserve's. May be NULL. */
	void (*lease)(struct fleet_listener *listener, const struct holding *holding,
		      const struct lease *lease, enum lease_state from, enum lease_state to);
	/* Another host changed a limiter. May be NULL. */
	void (*applied)(struct fleet_listener *listener, struct limiter *limiter,
			enum fleet_applied applied, const char *text);
	/*
	 * For a successor: the tokens in the buckets of @limiter changed, or their rates; or
	 * the limiter itself, see fleet_restored(), by another host; or it is about to go. May be
	 * NULL.
	 */
	void (*reshared)(struct fleet_listener *listener, struct limiter *limiter);
	void (*changed)(struct fleet_listener *listener, struct limiter *limiter, bool removed);
	/*
	 * Lists the open slots that other hosts are to know of, those that were opened first, and
	 * of no limiter more than HOST_SLOTS_OF_LIMITER_MAX. Returns how many. May be NULL.
	 */
	uint32_t (*slots)(struct fleet_listener *listener, struct held_slot list[HOST_SLOTS_MAX]);
	/*
	 * Other hosts may open the slots that are open now in @limiter, and below it: @all of them,
	 * or those of which slots_is_lost() tells. May be NULL.
	 */
	void (*slots_lost)(struct fleet_listener *listener, struct limiter *limiter, bool all);
};

/*
 * Makes a fleet for @engine, which is given fleet_source() by engine_init() only then; no session
 * yet. @coordinator, @options and @listener are borrowed. NULL when there is no memory. Q of the
 * options is computed.
 */
struct fleet *fleet_new(struct engine *engine, struct coordinator *coordinator,
			const struct fleet_options *options, struct fleet_listener *listener);

/*
 * Frees it; the coordinator has none of its requests any more, the engine no readers and changes.
 */
void fleet_free(struct fleet *fleet);

/* The engine's source. */
struct source *fleet_source(struct fleet *fleet);

/*
 * Goes on where a predecessor was, as the options' @handover has it. First fleet_restored() is told
 * of each limiter that was there, in the order of their making: it is in the engine, without
 * tokens, and as in @former was its holding. Then fleet_resume(), after which the buckets may be
 * filled; then fleet_start(). 0 or -ENOMEM.
 */
struct former_holding {
	uint64_t id, generation, saved, cut;
	int32_t version;
	uint64_t used_ns; /* as in struct holding, like the rest */
	enum holding_maker maker;
};
void fleet_restored(struct fleet *fleet, struct limiter *limiter,
		    const struct former_holding *former);
int fleet_resume(struct fleet *fleet, uint64_t now_ns);

/* Opens the first session, or goes on with that of the predecessor. */
void fleet_start(struct fleet *fleet, uint64_t now_ns);

/*
 * Leaves: gives back and closes the session, as far as that is possible; fleet_has_left() then.
 * Engine_stop() first.
 */
void fleet_leave(struct fleet *fleet, uint64_t now_ns);
bool fleet_has_left(const struct fleet *fleet);

/*
 * News from the coordinator; each after engine_run(). fleet_connected(): also after a
 * connection was lost, in the same session. fleet_expired(): the session is gone and all its nodes
 * may be others' by now. fleet_changed(): a node that was watched changed.
 */
void fleet_connected(struct fleet *fleet, uint64_t session, uint64_t now_ns);
void fleet_disconnected(struct fleet *fleet, uint64_t now_ns);
void fleet_expired(struct fleet *fleet, uint64_t now_ns);
void fleet_changed(struct fleet *fleet, const char *path, uint64_t now_ns);
void fleet_answered(struct fleet *fleet, struct request *request, uint64_t now_ns);

/*
 * A grant was delivered: counts it if the right ended since the step that decided it, which the
 * caller saw by @until_ns of fleet_use_until_ns() having passed.
 */
void fleet_was_late(struct fleet *fleet);

/*
 * Until when, by the engine's clock, what was granted in the last step may be delivered; NEVER_NS.
 */
uint64_t fleet_use_until_ns(const struct fleet *fleet);

/* The status. */
enum fleet_state fleet_state(const struct fleet *fleet);
const char *fleet_state_name(enum fleet_state state);
const struct fleet_counters *fleet_counters(const struct fleet *fleet);
const struct fleet_constants *fleet_constants(const struct fleet *fleet);
const char *fleet_hid(const struct fleet *fleet); /* "" without a session */
uint64_t fleet_session(const struct fleet *fleet);
uint32_t fleet_leases(const struct fleet *fleet); /* held, of all limiters */
/* Bytes of the paths of all its nodes that end with the session: at most FLEET_OWN_BYTES_MAX. */
uint32_t fleet_own_bytes(const struct fleet *fleet);
/* Seconds of right left, 0 if it has run out; whether the coordinator is out of reach. */
uint64_t fleet_right_ns(const struct fleet *fleet);
/* Whether settings are as all hosts have them, as far as it was told. */
bool fleet_is_up_to_date(const struct fleet *fleet);
/* Returns how many hosts there are, as far as it is known: at least 1. */
uint32_t fleet_host_count(const struct fleet *fleet);
/* Returns for how many ns this host has claimed leaves of @holding; NEVER_NS: it does not. */
uint64_t fleet_claimed_ns(const struct fleet *fleet, const struct holding *holding);
/* Whether it is known if there are other hosts: the first look has been. */
bool fleet_knows_hosts(const struct fleet *fleet);
bool fleet_is_connected(const struct fleet *fleet);
/* Tells whether the coordinator answers and the host is on its way to join. */
bool fleet_is_joining(const struct fleet *fleet);
bool fleet_is_degraded(const struct fleet *fleet);

/*
 * Whether this host may use partition @index of @holding now (from PARTITIONS_MAX on: of the
 * reserve), as of the last step: for the simulator's check that no two hosts may.
 */
bool fleet_is_entitled(const struct fleet *fleet, const struct holding *holding, uint32_t index);

#endif
