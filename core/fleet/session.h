/*
 * session - the host's session and its connection, from opening to leaving: rules 1, 13 and 15 of
 * fleet.h.
 *
 * That the session is to be dropped is a fact that any part may note; the step acts on it first.
 */
#ifndef RATEFS_CORE_FLEET_SESSION_H
#define RATEFS_CORE_FLEET_SESSION_H

#include "core/fleet/parts.h"

bool session_new(struct fleet *fleet);
void session_free(struct fleet *fleet);

enum fleet_state session_state(const struct fleet *fleet);
void session_enter(struct fleet *fleet, enum fleet_state state);
bool session_is_connected(const struct fleet *fleet);

/* The session's number, 0: there is none; the timeout that it was opened with. */
uint64_t session_id(const struct fleet *fleet);
uint64_t session_timeout_ns(const struct fleet *fleet);

/* The host's name in this session, "" until it has joined; the version of its /h node. */
const char *session_hid(const struct fleet *fleet);
int32_t session_version(const struct fleet *fleet);
void session_set_version(struct fleet *fleet, int32_t version);

/* Gives the host a new HID, whose node is about to be made; takes it back. */
void session_name(struct fleet *fleet);
void session_unname(struct fleet *fleet);

/* The host's node is there. */
void session_joined(struct fleet *fleet);

/* Goes on with the session @id of a predecessor, in which its node of @hid has @version. */
void session_resume(struct fleet *fleet, uint64_t id, const char *hid, int32_t version);

/* Opens the first session, or connects in the one to go on with. */
void session_start(struct fleet *fleet);

/* Notes that the session is to be dropped, and why: the first reason stays. NULL: it is not. */
void session_drop(struct fleet *fleet, const char *why);
const char *session_dropped(const struct fleet *fleet);

/* Ends the session here: nothing of it is known any more. Then closes it, and opens the next. */
void session_forget(struct fleet *fleet);
void session_reopen(struct fleet *fleet);

/* There is a connection in session @id; there is none any more. */
void session_connect(struct fleet *fleet, uint64_t id);
void session_disconnect(struct fleet *fleet);

/* Gives up the connection, not the session. */
void session_hang_up(struct fleet *fleet);

/* Notes the answer to @request: how long it took, and which trouble it ends. */
void session_note_answer(struct fleet *fleet, const struct request *request);

/* Notes that a transaction was acknowledged; when the last one was. */
void session_acknowledge(struct fleet *fleet);
uint64_t session_acknowledged_ns(const struct fleet *fleet);

/* Since when nothing is acknowledged, by the holder's clock; NEVER_NS: there is no trouble. */
uint64_t session_trouble_ns(const struct fleet *fleet);
void session_end_trouble(struct fleet *fleet);

/* Tells whether the coordinator answers: the last trouble is over. */
bool session_is_answered(const struct fleet *fleet);

/* When to begin anew to join; NEVER_NS. */
uint64_t session_retry_ns(const struct fleet *fleet);
void session_retry_at(struct fleet *fleet, uint64_t at_ns);

/* Opens the next session when it is time, and drops one that came to nothing for a minute. */
void session_watch(struct fleet *fleet);

/* Gives up a connection that does not answer in time. */
void session_watch_connection(struct fleet *fleet);

/* Leaving: until when it waits for answers; whether it is over. */
void session_leave(struct fleet *fleet);
bool session_is_leaving(const struct fleet *fleet);
uint64_t session_leave_ns(const struct fleet *fleet);
bool session_has_left(const struct fleet *fleet);
void session_leave_at_once(struct fleet *fleet);

#endif
