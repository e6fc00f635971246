/* session - the session and its connection, see session.h. */
#include "core/fleet/session.h"
#include "core/fleet/request.h"
#include "core/fleet/znode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLOW_TIMES = 2,	 /* an answer may take so many times what the slowest one took of late */
	VAIN_MAX = 8,	 /* give-ups that are counted, here and below ... */
	VAIN_SHIFT = 2,	 /* ... each makes the time four times as long */
	PAUSES_FROM = 2, /* so many sessions come to nothing before there is a pause */
};

#define NSEC_PER_MSEC UINT64_C(1000000)

struct session {
	enum fleet_state state;
	bool connected;
	bool hung_up;	     /* the connection was given up, and its end was not told yet */
	uint64_t id;	     /* 0: none */
	uint64_t timeout_ns; /* that it was opened with */
	char hid[HID_TEXT];
	int32_t version;	  /* of /h/HID */
	const char *dropped;	  /* why it is to be; NULL */
	uint64_t retry_ns;	  /* to begin anew to join; NEVER_NS */
	uint64_t open_ns;	  /* when the next one is opened; NEVER_NS: it is */
	uint32_t fruitless;	  /* sessions in a row in which the host never joined */
	uint64_t vain_since_ns;	  /* nothing is acknowledged since then; NEVER_NS */
	uint64_t trouble_ns;	  /* likewise, by the holder's clock */
	uint64_t acknowledged_ns; /* when the last transaction was */
	/* How long answers take: rule 13. */
	struct pace {
		uint64_t slow_ns;   /* the slowest since @since_ns ... */
		uint64_t before_ns; /* ... and in as long a time before that */
		uint64_t since_ns;
		uint32_t vain; /* connections that were given up since the last answer */
	} reads, writes;
	bool resumes; /* a predecessor's */
	bool leaving;
	bool left;
	uint64_t leave_ns; /* until then answers are waited for */
};

bool session_new(struct fleet *fleet)
{
	struct session *session = calloc(1, sizeof(*session));

	fleet->session = session;
	if (!session)
		return false;
	session->trouble_ns = NEVER_NS;
	session->retry_ns = NEVER_NS;
	/* Nothing is known yet of how long answers take, and no right is at stake. */
	session->reads.vain = 1;
	session->writes.vain = 1;
	return true;
}

void session_free(struct fleet *fleet)
{
	free(fleet->session);
}

enum fleet_state session_state(const struct fleet *fleet)
{
	return fleet->session->state;
}

void session_enter(struct fleet *fleet, enum fleet_state state)
{
	fleet->session->state = state;
}

bool session_is_connected(const struct fleet *fleet)
{
	return fleet->session->connected;
}

uint64_t session_id(const struct fleet *fleet)
{
	return fleet->session->id;
}

uint64_t session_timeout_ns(const struct fleet *fleet)
{
	return fleet->session->timeout_ns;
}

const char *session_hid(const struct fleet *fleet)
{
	return fleet->session->hid;
}

int32_t session_version(const struct fleet *fleet)
{
	return fleet->session->version;
}

void session_set_version(struct fleet *fleet, int32_t version)
{
	fleet->session->version = version;
}

void session_name(struct fleet *fleet)
{
	uint64_t high = fleet->coordinator->random(fleet->coordinator);
	uint64_t low = fleet->coordinator->random(fleet->coordinator);

	znode_hid_print(high, low, fleet->session->hid);
	fleet->session->version = 0;
}

void session_unname(struct fleet *fleet)
{
	fleet->session->hid[0] = '\0';
}

void session_joined(struct fleet *fleet)
{
	fleet->session->state = FLEET_READY;
	fleet->session->version = 1;
	fleet->session->acknowledged_ns = fleet->now_ns;
	fleet->session->trouble_ns = NEVER_NS;
}

void session_resume(struct fleet *fleet, uint64_t id, const char *hid, int32_t version)
{
	struct session *session = fleet->session;

	session->resumes = true;
	session->id = id;
	memcpy(session->hid, hid, HID_TEXT);
	session->version = version;
}

void session_start(struct fleet *fleet)
{
	struct session *session = fleet->session;

	session->vain_since_ns = fleet->now_ns;
	session->open_ns = NEVER_NS;
	session->trouble_ns = fleet->clocks.holder_ns;
	session->timeout_ns = fleet->constants.session_ns;
	if (session->resumes) {
		fleet->coordinator->resume(fleet->coordinator, session->id, session->timeout_ns);
		return;
	}
	session->state = FLEET_CONNECTING;
	fleet->coordinator->open(fleet->coordinator, session->timeout_ns);
}

void session_drop(struct fleet *fleet, const char *why)
{
	if (!fleet->session->dropped)
		fleet->session->dropped = why;
	fleet_wake_at(fleet, 0);
}

const char *session_dropped(const struct fleet *fleet)
{
	return fleet->session->dropped;
}

/* Opens the next session, after a pause if the last ones came to nothing. */
static void open_next(struct fleet *fleet)
{
	uint32_t vain = fleet->session->fruitless < VAIN_MAX ? fleet->session->fruitless : VAIN_MAX;
	uint64_t pause_ns = vain < PAUSES_FROM ? 0 : FLEET_PAUSE_NS << (vain - PAUSES_FROM);

	if (pause_ns > FLEET_PAUSE_MAX_NS)
		pause_ns = FLEET_PAUSE_MAX_NS;
	fleet->session->fruitless++;
	fleet->session->open_ns = fleet->now_ns;
	if (pause_ns)
		fleet->session->open_ns += fleet_jitter(fleet, pause_ns);
	fleet->session->vain_since_ns = fleet->session->open_ns;
}

static void open_session(struct fleet *fleet)
{
	fleet->session->open_ns = NEVER_NS;
	fleet->session->timeout_ns = fleet->constants.session_ns;
	fleet->coordinator->open(fleet->coordinator, fleet->session->timeout_ns);
}

void session_forget(struct fleet *fleet)
{
	struct session *session = fleet->session;

	session->dropped = NULL;
	session->resumes = false;
	session->hid[0] = '\0';
	session->id = 0;
	session->hung_up = false;
	session->retry_ns = NEVER_NS;
	if (session->trouble_ns == NEVER_NS)
		session->trouble_ns = fleet->clocks.holder_ns;
	session->connected = false;
	session->state = session->leaving ? FLEET_CLOSED : FLEET_CONNECTING;
}

void session_reopen(struct fleet *fleet)
{
	struct session *session = fleet->session;

	fleet->coordinator->close(fleet->coordinator);
	if (session->leaving) {
		session->left = true;
		return;
	}
	open_next(fleet);
	if (session->open_ns <= fleet->now_ns)
		open_session(fleet);
	fleet_wake_at(fleet, 0);
}

void session_connect(struct fleet *fleet, uint64_t id)
{
	struct session *session = fleet->session;

	session->connected = true;
	session->hung_up = false;
	session->id = id;
	fleet_wake_at(fleet, 0);
}

/* From now on nothing is acknowledged, if it was until now. */
static void note_trouble(struct fleet *fleet, uint64_t now_ns)
{
	if (fleet->session->vain_since_ns == NEVER_NS)
		fleet->session->vain_since_ns = now_ns;
}

void session_disconnect(struct fleet *fleet)
{
	struct session *session = fleet->session;

	if (!session->connected)
		return;
	session->connected = false;
	session->hung_up = false;
	note_trouble(fleet, fleet->now_ns);
	if (session->trouble_ns == NEVER_NS)
		session->trouble_ns = fleet->clocks.holder_ns;
	fleet_wake_at(fleet, 0);
}

void session_hang_up(struct fleet *fleet)
{
	if (!fleet->session->connected || fleet->session->hung_up)
		return;
	fleet->session->hung_up = true;
	fleet->coordinator->hang_up(fleet->coordinator);
}

void session_acknowledge(struct fleet *fleet)
{
	fleet->session->version++;
	fleet->session->acknowledged_ns = fleet->now_ns;
}

uint64_t session_acknowledged_ns(const struct fleet *fleet)
{
	return fleet->session->acknowledged_ns;
}

uint64_t session_trouble_ns(const struct fleet *fleet)
{
	return fleet->session->trouble_ns;
}

void session_end_trouble(struct fleet *fleet)
{
	fleet->session->trouble_ns = NEVER_NS;
}

bool session_is_answered(const struct fleet *fleet)
{
	return fleet->session->vain_since_ns == NEVER_NS;
}

uint64_t session_retry_ns(const struct fleet *fleet)
{
	return fleet->session->retry_ns;
}

void session_retry_at(struct fleet *fleet, uint64_t at_ns)
{
	fleet->session->retry_ns = at_ns;
}

/*
 * Returns the longest time that an answer is waited for: then it is too late to renew the right a
 * second time.
 */
static uint64_t longest_answer_ns(const struct fleet *fleet)
{
	const struct fleet_constants *constants = &fleet->constants;
	uint64_t between_ns = constants->renewal_ns / 4 * 5, most_ns = constants->session_ns / 2;

	if (constants->right_ns <= between_ns)
		return FLEET_ANSWER_NS;
	if (most_ns > FLEET_ANSWER_MAX_NS)
		most_ns = FLEET_ANSWER_MAX_NS;
	if (most_ns > (constants->right_ns - between_ns) / 2)
		most_ns = (constants->right_ns - between_ns) / 2;
	return most_ns > FLEET_ANSWER_NS ? most_ns : FLEET_ANSWER_NS;
}

static uint64_t answer_within_ns(const struct fleet *fleet, const struct pace *pace)
{
	uint64_t slow_ns = pace->slow_ns > pace->before_ns ? pace->slow_ns : pace->before_ns;
	uint64_t ns = SLOW_TIMES * slow_ns, most_ns = longest_answer_ns(fleet);

	if (ns < FLEET_ANSWER_NS)
		ns = FLEET_ANSWER_NS;
	ns <<= VAIN_SHIFT * pace->vain;
	return ns < most_ns ? ns : most_ns;
}

static struct pace *pace_of(struct fleet *fleet, const struct request *request)
{
	return request->kind == REQUEST_TRANSACTION ? &fleet->session->writes
						    : &fleet->session->reads;
}

/* Returns how long @request is waited for. A read may have been behind a write. */
static uint64_t patience_ns(struct fleet *fleet, const struct request *request)
{
	uint64_t reads_ns = answer_within_ns(fleet, &fleet->session->reads);
	uint64_t writes_ns = answer_within_ns(fleet, &fleet->session->writes);

	if (request->kind == REQUEST_TRANSACTION || writes_ns > reads_ns)
		return writes_ns;
	return reads_ns;
}

/*
 * Returns how long @request has been under way, without the time in which this host itself did not
 * run. That is bounded, so that a host that is always late gives up a dead link, too.
 */
static uint64_t waited_ns(const struct fleet *fleet, const struct request *request)
{
	uint64_t ns = fleet->clocks.holder_ns - request->sent_ns;
	uint64_t late_ns = fleet->late_ns - request->late_ns;

	if (late_ns > FLEET_ANSWER_MAX_NS)
		late_ns = FLEET_ANSWER_MAX_NS;
	return late_ns < ns ? ns - late_ns : 0;
}

/* An answer takes @took_ns or more; @now_ns by the holder's clock. */
static void note_slow(struct pace *pace, uint64_t took_ns, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - pace->since_ns;

	if (passed_ns >= FLEET_SLOW_NS) {
		pace->before_ns = passed_ns < 2 * FLEET_SLOW_NS ? pace->slow_ns : 0;
		pace->slow_ns = 0;
		pace->since_ns = now_ns;
	}
	if (took_ns > pace->slow_ns)
		pace->slow_ns = took_ns;
}

void session_note_answer(struct fleet *fleet, const struct request *request)
{
	bool is_write = request->kind == REQUEST_TRANSACTION;
	struct pace *pace = pace_of(fleet, request);

	if (request->answer == ANSWER_UNKNOWN)
		return;
	note_slow(pace, waited_ns(fleet, request), fleet->clocks.holder_ns);
	pace->vain = 0;
	/*
	 * Only an answer to a write shows that there is a quorum; before it joins a host may have
	 * none.
	 */
	if (is_write || fleet->session->state < FLEET_JOINING ||
	    fleet->session->state == FLEET_REFUSED)
		fleet->session->vain_since_ns = NEVER_NS;
	if (is_write && request->answer == ANSWER_OK && *fleet->session->hid)
		fleet->session->fruitless = 0;
}

void session_watch(struct fleet *fleet)
{
	if (fleet->session->open_ns != NEVER_NS) {
		if (fleet->session->open_ns <= fleet->now_ns)
			open_session(fleet);
		else
			fleet_wake_at(fleet, fleet->session->open_ns);
	}
	if (fleet->session->vain_since_ns == NEVER_NS)
		return;
	if (fleet->now_ns >= fleet->session->vain_since_ns + FLEET_HANDLE_NS)
		session_drop(fleet, fleet->session->connected ? "nothing acknowledged for a minute"
							      : "no connection for a minute");
	fleet_wake_at(fleet, fleet->session->vain_since_ns + FLEET_HANDLE_NS);
}

static void give_up(struct pace *pace)
{
	if (pace->vain < VAIN_MAX)
		pace->vain++;
}

void session_watch_connection(struct fleet *fleet)
{
	uint64_t now_ns = fleet->now_ns, passed_ns, within_ns;
	const struct request *oldest;

	oldest = request_oldest(fleet);
	if (!fleet->session->connected || !oldest || fleet->session->hung_up)
		return;
	passed_ns = waited_ns(fleet, oldest);
	within_ns = patience_ns(fleet, oldest);
	if (passed_ns < within_ns) {
		fleet_wake_at(fleet, now_ns + within_ns - passed_ns);
		return;
	}
	fleet->session->hung_up = true;
	note_trouble(fleet, now_ns);
	if (fleet->session->trouble_ns == NEVER_NS)
		fleet->session->trouble_ns = oldest->sent_ns;
	/* A server may be slow now and then: once it answers, that is not forgotten. */
	note_slow(pace_of(fleet, oldest), passed_ns, fleet->clocks.holder_ns);
	give_up(&fleet->session->reads);
	give_up(&fleet->session->writes);
	fleet_tell(fleet, FLEET_HUNG_UP, "no answer for %u ms: the connection is given up",
		   (unsigned int)(within_ns / NSEC_PER_MSEC));
	fleet->coordinator->hang_up(fleet->coordinator);
}

void session_leave(struct fleet *fleet)
{
	fleet->session->leaving = true;
	fleet->session->leave_ns = fleet->now_ns + FLEET_LEAVE_NS;
}

void session_leave_at_once(struct fleet *fleet)
{
	fleet->session->left = true;
}

bool session_is_leaving(const struct fleet *fleet)
{
	return fleet->session->leaving;
}

uint64_t session_leave_ns(const struct fleet *fleet)
{
	return fleet->session->leave_ns;
}

bool session_has_left(const struct fleet *fleet)
{
	return fleet->session->left;
}
