/* siphash - SipHash-2-4, see siphash.h. */
#include "core/base/siphash.h"

struct state {
	uint64_t a, b, c, d;
};

static uint64_t rotate_word(uint64_t word, unsigned int bits)
{
	return word << bits | word >> (64 - bits);
}

static void mix_state(struct state *s, unsigned int rounds)
{
	while (rounds--) {
		s->a += s->b;
		s->b = rotate_word(s->b, 13) ^ s->a;
		s->a = rotate_word(s->a, 32);
		s->c += s->d;
		s->d = rotate_word(s->d, 16) ^ s->c;
		s->a += s->d;
		s->d = rotate_word(s->d, 21) ^ s->a;
		s->c += s->b;
		s->b = rotate_word(s->b, 17) ^ s->c;
		s->c = rotate_word(s->c, 32);
	}
}

static void absorb_word(struct state *s, uint64_t word)
{
	s->d ^= word;
	mix_state(s, 2);
	s->a ^= word;
}

uint64_t siphash(const void *bytes, size_t length, const uint64_t seed[2])
{
	struct state s = {
		seed[0] ^ UINT64_C(0x736f6d6570736575),
		seed[1] ^ UINT64_C(0x646f72616e646f6d),
		seed[0] ^ UINT64_C(0x6c7967656e657261),
		seed[1] ^ UINT64_C(0x7465646279746573),
	};
	const unsigned char *byte = bytes;
	uint64_t word = 0;

	for (size_t i = 0; i < length; i++) {
		word |= (uint64_t)byte[i] << i % 8 * 8;
		if (i % 8 == 7) {
			absorb_word(&s, word);
			word = 0;
		}
	}
	absorb_word(&s, word | (uint64_t)(length & 0xff) << 56);
	s.c ^= 0xff;
	mix_state(&s, 4);
	return s.a ^ s.b ^ s.c ^ s.d;
}
