/* load - readers that are made up, see load.h. */
#include "companions/load.h"

#include "core/values/name.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Puts beginnings of erand48(3) far apart: 2^48 divided by the golden ratio, an odd number. */
static const uint64_t CHANCE_STEP = UINT64_C(0x9e3779b97f4b);

static int refuse(char error[ERROR_TEXT], const char *word, const char *why)
{
	snprintf(error, ERROR_TEXT, "%s: '%.200s'", why, word);
	return -EINVAL;
}

/* Takes the next word of *@rest; "" at the end. */
static const char *next_word(char **rest)
{
	const char *word;

	do
		word = strsep(rest, TEXT_SPACE);
	while (word && !*word);
	return word ? word : "";
}

/* Cuts the key off @path, where it has one. */
static int take_path(struct load *load, char *path, char error[ERROR_TEXT])
{
	char *key = strstr(path, "/keys/");

	load->limiter = path;
	if (!key)
		return 0;
	*key = '\0';
	load->key = key + strlen("/keys/");
	if (*load->key && strlen(load->key) <= NAME_BYTES_MAX && !strchr(load->key, '/'))
		return 0;
	return refuse(error, load->key, "not a key, 1 to 255 bytes");
}

static int take_rate(struct load *load, const char *word, char error[ERROR_TEXT])
{
	struct rate rate;

	if (rate_parse(word, &rate) || rate_is_unlimited(&rate) || !rate.amount)
		return refuse(error, word, "not a number of readers, such as 20/s");
	load->rate = rate_fraction(&rate);
	return 0;
}

static int take_duration(struct load *load, const char *word, char error[ERROR_TEXT])
{
	if (duration_parse(word, &load->for_ns) || !load->for_ns)
		return refuse(error, word, "not a duration, such as 10min");
	load->readers = (double)load->for_ns * (double)load->rate.num / (double)load->rate.den;
	if (load->readers <= LOAD_READERS_MAX)
		return 0;
	return refuse(error, word, "more than 10000000 readers in that time");
}

/* Takes the words of @rest behind the path. */
static int take_words(struct load *load, char **rest, char error[ERROR_TEXT])
{
	int err = take_rate(load, next_word(rest), error);
	const char *word = next_word(rest);

	if (err)
		return err;
	if (!strcmp(word, "of")) {
		word = next_word(rest);
		if (tokens_parse(word, &load->tokens))
			return refuse(error, word, "not a number of tokens");
		word = next_word(rest);
	}
	if (strcmp(word, "for") != 0)
		return refuse(error, word, "not a load, " LOAD_FORM);
	err = take_duration(load, next_word(rest), error);
	if (err)
		return err;
	word = next_word(rest);
	load->is_even = !strcmp(word, "even");
	if (load->is_even)
		word = next_word(rest);
	return *word ? refuse(error, word, "a word too many, " LOAD_FORM) : 0;
}

/* Works out when the reader comes before which @load->came did. */
static void place_next(struct load *load)
{
	const struct fraction *rate = &load->rate;

	if (load->is_even) {
		u128 at_ns = (u128)load->came * rate->den / rate->num;

		load->next_ns = at_ns < load->for_ns ? (uint64_t)at_ns : NEVER_NS;
		return;
	}
	load->at_ns -= log1p(-erand48(load->chance)) * (double)rate->den / (double)rate->num;
	load->next_ns = load->at_ns < (double)load->for_ns ? (uint64_t)load->at_ns : NEVER_NS;
}

int load_parse(struct load *load, const char *text, unsigned int number, char error[ERROR_TEXT])
{
	char *rest = load->text, *path;
	int err;

	*load = (struct load){.tokens = 1};
	for (int i = 0; i < 3; i++)
		load->chance[i] = (unsigned short)((number + 1) * CHANCE_STEP >> 16 * i);
	if (strlen(text) >= LOAD_TEXT)
		return refuse(error, text, "longer than 4095 bytes");
	strcpy(load->text, text + strspn(text, TEXT_SPACE));
	path = strsep(&rest, TEXT_SPACE);
	err = take_path(load, path, error);
	if (!err)
		err = take_words(load, &rest, error);
	if (!err)
		place_next(load);
	return err;
}

void load_advance(struct load *load)
{
	load->came++;
	place_next(load);
}
