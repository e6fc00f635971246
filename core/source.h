/*
 * source - INTERFACE to where settings live: changes go out, answers come in.
 *
 * The engine hands over one change at a time, complete and checked, and goes on with everything
 * else until the answer comes. Where nothing needs to be kept the answer comes at once. Another
 * source is another implementation of this struct in fs/source_NAME.c.
 */
#ifndef RATEFS_CORE_SOURCE_H
#define RATEFS_CORE_SOURCE_H

struct change;

struct source {
	/*
	 * Makes @change durable, then calls engine_stored() with 0 or -errno: from within this call,
	 * or later under the engine's lock. The change stays in place until then.
	 */
	void (*store)(struct source *source, struct change *change);
};

#endif
