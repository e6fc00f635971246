/*
 * times - the protocol's constants of time, all in one place; those of a fleet that can be set are
 * in its struct fleet_constants. R, D, Q and T as in fleet.h.
 */
#ifndef RATEFS_CORE_TIMES_H
#define RATEFS_CORE_TIMES_H

#include "core/values/quantity.h"

/* The fleet's constants, unless it has others; Q follows from D: record_quarantine_ns(). */
#define FLEET_RENEWAL_NS      UINT64_C(1500000000)  /* R */
#define FLEET_RIGHT_NS	      UINT64_C(8000000000)  /* D */
#define FLEET_SESSION_NS      UINT64_C(15000000000) /* T: above Q + 3 R, rule 10 */
#define FLEET_RENEWAL_MIN_NS  UINT64_C(10000000)    /* bounds of what is believed of them */
#define FLEET_CONSTANT_MAX_NS (3600 * NSEC_PER_SEC)

/* The session and its connection: rules 13 and 15. */
#define FLEET_ANSWER_NS	      UINT64_C(700000000) /* an answer is waited for so long at least */
#define FLEET_SLOW_NS	      (30 * NSEC_PER_SEC) /* a slow answer counts so long, or twice that */
#define FLEET_LATE_NS	      (NSEC_PER_SEC / 10) /* a step that is so late saw nothing before it */
#define FLEET_HANDLE_NS	      UINT64_C(60000000000) /* nothing acknowledged: a new session */
#define FLEET_ANSWER_MAX_NS   (FLEET_HANDLE_NS / 6) /* several connections are tried before that */
#define FLEET_PAUSE_NS	      NSEC_PER_SEC /* before the next session; doubled each time ... */
#define FLEET_PAUSE_MAX_NS    (60 * NSEC_PER_SEC) /* ... up to this */
#define FLEET_LEAVE_NS	      (2 * NSEC_PER_SEC)  /* leaving waits so long for answers */
#define FLEET_JOIN_RETRY_NS   NSEC_PER_SEC	  /* to look at the layout again, or to make it */
#define FLEET_LAYOUT_RETRY_NS (5 * NSEC_PER_SEC)  /* likewise, after it was refused */

/* Settings. */
#define FLEET_FOLLOW_RETRY_NS NSEC_PER_SEC	   /* reading them has failed */
#define FLEET_PATIENCE_NS     UINT64_C(1500000000) /* a change waits for a coordinator */
#define FLEET_RACES_NS	      (5 * NSEC_PER_SEC)   /* ... or while others are first */
#define FLEET_RACE_NS	      UINT64_C(1000000)	   /* ... at random before the next try, doubled */
#define FLEET_ROW_PARTS	      2	 /* changes in a row for such a part of R are enough: a pause ... */
#define FLEET_PAUSE_PARTS     8	 /* ... of such a part of R, and more where answers are slow */
#define FLEET_AGAIN_PARTS     32 /* a renewal that lost to a change is tried again so soon */

/* Partitions: CHOOSING. */
#define FLEET_HERD_NS	      (NSEC_PER_SEC / 5)  /* hosts that want the same at once come apart */
#define FLEET_HOSTS_SPREAD_NS UINT64_C(15000000)  /* looks at who else is there: one so often */
#define FLEET_ENDS_SPREAD_NS  UINT64_C(100000000) /* looks for what a host left that was ended */
#define FLEET_VAIN_NS	      (3 * NSEC_PER_SEC)  /* given back so soon it was of no use; doubled */
#define FLEET_SPARE_MAX_NS    (5 * NSEC_PER_SEC) /* partitions not wanted are not kept for longer */
#define FLEET_RESERVE_NS      (60 * NSEC_PER_SEC) /* to look for a reserve where all are leased */

/* Values that are shared beside leases. */
#define FLEET_AGREED_RATE_SPACING_NS NSEC_PER_SEC /* between two writes of an agreed rate */
#define FLEET_AGREED_RATE_UNWATCHED_NS \
	(5 * NSEC_PER_SEC)		     /* between two reads of one that is not watched */
#define FLEET_TOLD_SPACING_NS	NSEC_PER_SEC /* the same of quotas that were told */
#define FLEET_TOLD_UNWATCHED_NS (5 * NSEC_PER_SEC) /* likewise */
#define FLEET_SURVEY_FRESH_NS	(NSEC_PER_SEC / 5) /* the same is not read again sooner */

#endif
