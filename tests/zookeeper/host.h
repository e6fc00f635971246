/*
 * host - a zookeeper, and in place of the daemon and the fleet what remembers all that it is
 * told.
 */
#ifndef RATEFS_TESTS_HOST_H
#define RATEFS_TESTS_HOST_H

#include "core/fleet/coordinator.h"
#include "fs/zookeeper/zookeeper.h"

#include <stdbool.h>
#include <stdint.h>

#define MS_NS UINT64_C(1000000)

enum { SESSION_MS = 2000, LONG_SESSION_MS = 20000, WAIT_MS = 10000 };

enum told { TOLD_CONNECTED, TOLD_DISCONNECTED, TOLD_EXPIRED, TOLD_CHANGED, TOLD_KINDS };

struct host {
	struct zookeeper *source;
	struct coordinator *coordinator;
	struct fleet *fleet;
};

/* Opens a source and starts it, with a session wanted; NULL if it was refused. */
struct host *host_start(const char *servers, const char *path, const char *credentials);
/* The same, and its session outlives a server that is slow to start. */
struct host *host_start_long(const char *servers, const char *path);
void host_stop(struct host *host);

/* Waits until it was told @kind @count times in all; false after WAIT_MS. */
bool host_wait(struct host *host, enum told kind, unsigned int count);
bool host_wait_ms(struct host *host, enum told kind, unsigned int count, unsigned int most_ms);
unsigned int host_count(struct host *host, enum told kind);
uint64_t host_session(struct host *host);
const char *host_changed(struct host *host); /* the path that changed last */
unsigned int host_answers(struct host *host);

/* Calls of the coordinator, under the lock. */
void host_open(struct host *host);
void host_close(struct host *host);
void host_hang_up(struct host *host);
void host_send(struct host *host, struct request *request);

/* The lock is kept, so that the thread cannot go on once it has something to tell. */
void host_hold(struct host *host);
void host_let_go(struct host *host);
void host_send_held(struct host *host, struct request *request);

/* Waits for the answer of a request that was sent; ANSWER_UNKNOWN + 1 if none comes. */
enum answer host_answer(struct host *host, struct request *request);

/* Sends and waits. */
enum answer host_ask(struct host *host, struct request *request);

struct request *host_request_get(const char *path, bool watch);
struct request *host_request_list(const char *path, bool watch);
struct request *host_request_transaction(void);
struct operation *host_request_add(struct request *request, enum operation_kind kind,
				   const char *path, const char *data, int32_t version);
void host_request_free(struct request *request);

/* One that is asked and forgotten. */
enum answer host_create(struct host *host, const char *path, const char *data, unsigned int flags);
enum answer host_set(struct host *host, const char *path, const char *data, int32_t version);
enum answer host_delete(struct host *host, const char *path, int32_t version);
enum answer host_get(struct host *host, const char *path);

uint64_t host_now_ms(void);

#endif
