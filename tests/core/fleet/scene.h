/*
 * scene - a host of a fleet before a coordinator that does what the test says: it keeps nodes in a
 * table, and answers at once, one by one, or wrongly.
 *
 * With every transaction that is sent it checks rule 2 of core/fleet/fleet.h.
 */
#ifndef RATEFS_TESTS_SCENE_H
#define RATEFS_TESTS_SCENE_H

#include "tests/core/stage.h"

#include "core/fleet/fleet.h"
#include "core/limiter/holding.h"

enum { NODES_MAX = 256, SENT_MAX = 256, STRINGS_MAX = 4096 };

struct node {
	char path[NODE_PATH_MAX];
	const char *data; /* the scene's */
	int32_t version;
	uint64_t made_zxid, zxid;
	uint64_t session; /* of an ephemeral one; 0 */
	bool watched;	  /* its children are: one that the test makes or deletes is told */
};

struct scene {
	struct coordinator coordinator; /* first */
	struct engine engine;
	struct fleet *fleet;
	struct fleet_options options;
	struct fleet_listener listener;
	struct handover_memory handover;

	uint64_t now_ns;	       /* the engine's clock ... */
	uint64_t holder_ns, waiter_ns; /* ... and what these are ahead of it */
	bool held_up;		       /* nothing is answered until the test says so */
	bool connected;
	uint64_t session;
	struct request *sent[SENT_MAX]; /* not answered yet, in order */
	uint32_t sent_count;
	unsigned int opened, resumed, closed, hung_up, transactions;
	char transaction[4096];	 /* the last that was sent */
	uint64_t transaction_ns; /* and when */
	char event[ERROR_TEXT];	 /* the last */
	unsigned int told_full;	 /* events that begin so */
	/* Requests for the data of some /f/LID. */
	unsigned int agreed_rate_read, agreed_rate_watched;

	struct node nodes[NODES_MAX];
	uint32_t node_count;
	uint64_t epoch, writes;
	uint32_t sequence;
	uint64_t drawn;
	char *strings[STRINGS_MAX]; /* owned */
	uint32_t string_count;
};

/* A host that has joined a fleet, in which there is another one, without limiters. */
void scene_open(struct scene *scene);
/* Before that: nothing is there, and the host has not begun. scene_begin() lets it. */
void scene_prepare(struct scene *scene);
void scene_begin(struct scene *scene);
/*
 * The host is killed, and what is under way is lost; its successor goes on, without a connection
 * yet. Returns the successor's @limiter: the successor has no other.
 */
struct limiter *scene_succeed(struct scene *scene, struct limiter *limiter);
/* Frees all; no reader may wait. */
void scene_close(struct scene *scene);

/* Time passes; deadlines that fall due are handled, and answered unless requests are held up. */
void scene_run(struct scene *scene, uint64_t ns);

/* The oldest request: done and answered; answered so without being done; done, but not known. */
void scene_answer(struct scene *scene);
void scene_refuse(struct scene *scene, enum answer answer, uint32_t failed);
void scene_lose(struct scene *scene, bool done);
/* All requests, and those that follow from them. */
void scene_answer_all(struct scene *scene);
/* Answers until the oldest request is a transaction that is about @path. */
void scene_answer_until(struct scene *scene, const char *path);

/* The connection goes, with all that is under way, and comes back. */
void scene_disconnect(struct scene *scene);
void scene_connect(struct scene *scene);

/* Prints the oldest request: `read PATH`, `list PATH`, or operations; the host is HID. */
void scene_assert_next(struct scene *scene, const char *expected);
void scene_say(const struct scene *scene, const struct request *request, char text[4096]);

/* A transaction is done or refused; the results of reads are filled in. */
void scene_execute(struct scene *scene, struct request *request);
void scene_look(struct scene *scene, struct request *request);

/* Nodes, as another host changes them. */
const struct node *scene_node(const struct scene *scene, const char *path);
void scene_set(struct scene *scene, const char *path, const char *data);
void scene_delete(struct scene *scene, const char *path);

/* Another host leaves these @names in @folder, with spaces between them, and no others. */
void scene_lay(struct scene *scene, const char *folder, const char *names);

/* Tells whether there is a node at @path, in which the host is HID. */
bool scene_has(const struct scene *scene, const char *path);

/* A limiter, or a change of one; its outcome, or WAITING. */
struct limiter *scene_make(struct scene *scene, const char *name, const char *config);
int scene_change(struct scene *scene, struct change *change);

/* A reader that asks for a token, by now. */
int scene_ask(struct scene *scene, struct guest *guest, struct limiter *limiter);

/* A reader of `try`. It gives up at once where it would wait for partitions: WAITING. */
int scene_try(struct scene *scene, struct limiter *limiter);

/* The state of the lease of partition @index. */
enum lease_state scene_lease(const struct limiter *limiter, uint32_t index);

#endif
