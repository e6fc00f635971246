/*
 * progress - how far a copy is, on standard error: as one line on SIGUSR1, and if it is asked for
 * as one at the end, and before on a terminal as a line that is renewed each second.
 *
 * - A thread of its own writes them. A signal that interrupted the copy would cost it its place in
 *   the queue of a limiter, and standard error that takes nothing would hold it up.
 * - A line for which standard error has no room is left out. A terminal or pipe is opened anew for
 *   that, since what others write there may be cut off no more than the copy held up.
 */
#ifndef RATEFS_COMPANIONS_PROGRESS_H
#define RATEFS_COMPANIONS_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRESS_MARKS = 10 };

struct progress_mark {
	uint64_t bytes, at_ns;
};

/* Of one copy. Both threads use the atomic members, and the thread alone the marks. */
struct progress {
	_Atomic uint64_t bytes; /* written */
	atomic_bool is_over;
	bool is_shown, on_terminal, has_thread;
	int out;       /* where lines go */
	uint64_t size; /* of the input, from where it begins; 0: not known */
	pthread_t thread;
	struct progress_mark began, marks[PROGRESS_MARKS]; /* one each second, the oldest go */
	size_t marked;
};

/* Has a SIGUSR1 wait for the copy to begin; it would end the program. */
void progress_expect(void);

/*
 * Begins a copy of standard input, whose lines are shown if @is_shown. Where no thread can be had
 * there are no lines, which a message says to those who asked for them.
 */
void progress_begin(struct progress *progress, bool is_shown);

/* Notes that @bytes more were written. */
static inline void progress_add(struct progress *progress, size_t bytes)
{
	atomic_fetch_add_explicit(&progress->bytes, bytes, memory_order_relaxed);
}

/* Shows the last line. Messages can follow; a second call does nothing. */
void progress_end(struct progress *progress);

#endif
