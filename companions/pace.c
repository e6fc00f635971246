/* pace - how many tokens a pipe asks for, see pace.h. */
#include "companions/pace.h"

#define PACE_NS UINT64_C(30000000)

enum { GROWTH = 8 }; /* times as many tokens as before that a take waits for, at most */

static uint64_t power_of_two(uint64_t most)
{
	uint64_t power = 1;

	while (power <= most / 2)
		power *= 2;
	return power;
}

struct pace_take pace_next(const struct pace *pace, uint64_t left)
{
	uint64_t most = power_of_two(left);

	return (struct pace_take){
		.least = power_of_two(pace->expected < most ? pace->expected : most),
		.most = most,
	};
}

void pace_input(struct pace *pace, uint64_t now_ns)
{
	pace->granted_ns = now_ns;
}

void pace_refused(struct pace *pace, const struct pace_take *take)
{
	pace->expected = take->least > 1 ? take->least / 2 : 1;
}

void pace_granted(struct pace *pace, const struct pace_take *take, uint64_t tokens, uint64_t now_ns)
{
	uint64_t took_ns = now_ns > pace->granted_ns ? now_ns - pace->granted_ns : 1;
	uint64_t expected = tokens * PACE_NS / took_ns;

	pace->granted_ns = now_ns;
	/* It says nothing of how many more there were. */
	if (tokens >= take->most)
		return;
	if (expected > pace->expected * GROWTH)
		expected = pace->expected * GROWTH;
	pace->expected = expected < 1 ? 1 : expected > PACE_PIECE ? PACE_PIECE : expected;
}
