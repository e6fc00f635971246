/* numbers - a set of small numbers, see numbers.h. */
#include "core/limiter/numbers.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64 };

static uint64_t bit_of(uint32_t number)
{
	return UINT64_C(1) << number % WORD_BITS;
}

uint32_t numbers_free_from(const struct numbers *numbers, uint32_t first, uint32_t end)
{
	while (first < end && first / WORD_BITS < numbers->word_count) {
		uint64_t word = numbers->words[first / WORD_BITS] | (bit_of(first) - 1);

		if (word != UINT64_MAX) {
			first = first / WORD_BITS * WORD_BITS + (uint32_t)__builtin_ctzll(~word);
			break;
		}
		first = (first / WORD_BITS + 1) * WORD_BITS;
	}
	return first < end ? first : end;
}

uint32_t numbers_next(const struct numbers *numbers, uint32_t first, uint32_t end)
{
	while (first < end && first / WORD_BITS < numbers->word_count) {
		uint64_t word = numbers->words[first / WORD_BITS] & ~(bit_of(first) - 1);

		if (word) {
			first = first / WORD_BITS * WORD_BITS + (uint32_t)__builtin_ctzll(word);
			return first < end ? first : end;
		}
		first = (first / WORD_BITS + 1) * WORD_BITS;
	}
	return end;
}

/* Makes room for @number. False: there is no memory. */
static bool make_room(struct numbers *numbers, uint32_t number)
{
	uint32_t count = numbers->word_count ? numbers->word_count : 1;
	uint64_t *words;

	while (number / WORD_BITS >= count)
		count *= 2;
	if (count == numbers->word_count)
		return true;
	words = realloc(numbers->words, count * sizeof(*words));
	if (!words)
		return false;
	memset(words + numbers->word_count, 0, (count - numbers->word_count) * sizeof(*words));
	numbers->words = words;
	numbers->word_count = count;
	return true;
}

int numbers_add(struct numbers *numbers, uint32_t number)
{
	uint64_t *word;

	if (number >= NUMBERS_END)
		return -ERANGE;
	if (!make_room(numbers, number))
		return -ENOMEM;
	word = &numbers->words[number / WORD_BITS];
	if (*word & bit_of(number))
		return -EEXIST;
	*word |= bit_of(number);
	return 0;
}

void numbers_remove(struct numbers *numbers, uint32_t number)
{
	assert(number / WORD_BITS < numbers->word_count);
	numbers->words[number / WORD_BITS] &= ~bit_of(number);
}

void numbers_end(struct numbers *numbers)
{
	free(numbers->words);
	*numbers = (struct numbers){0};
}
