/* concurrency_setting - the setting `concurrency`, from and to text, see concurrency_setting.h. */
#include "core/values/concurrency_setting.h"
#include "core/values/words.h"

#include <errno.h>
#include <stdio.h>

static const struct slot_limit AUTO_DEFAULT = {
	.kind = SLOTS_AUTO,
	.min = 1,
	.max = 200,
	.decrease = 900000000,
};

/* The parameters of `auto`; the values are the caller's. */
enum { AUTO_MIN, AUTO_MAX, AUTO_DECREASE, AUTO_WORDS };
static void auto_words(struct word words[AUTO_WORDS], uint64_t values[AUTO_WORDS])
{
	words[AUTO_MIN] = (struct word){.name = "min", .least = 1, .most = SLOTS_COUNT_MAX};
	words[AUTO_MAX] = (struct word){.name = "max", .least = 1, .most = SLOTS_COUNT_MAX};
	words[AUTO_DECREASE] = (struct word){.name = "decrease",
					     .type = WORD_DECIMAL,
					     .least = DECIMAL_ONE / 10,
					     .most = DECIMAL_ONE / 100 * 99};
	for (int i = 0; i < AUTO_WORDS; i++)
		words[i].value = &values[i];
}

static int parse_auto(const char *text, struct slot_limit *slots, char *error)
{
	const struct slot_limit *unless = &AUTO_DEFAULT;
	uint64_t values[AUTO_WORDS] = {unless->min, unless->max, unless->decrease};
	struct word words[AUTO_WORDS];
	int err;

	auto_words(words, values);
	err = words_parse(text, words, AUTO_WORDS, error);
	if (err)
		return err;
	if (values[AUTO_MIN] > values[AUTO_MAX])
		return text_refuse(-ERANGE, error, text, "min is above max");
	*slots = (struct slot_limit){
		.kind = SLOTS_AUTO,
		.min = (uint32_t)values[AUTO_MIN],
		.max = (uint32_t)values[AUTO_MAX],
		.decrease = (uint32_t)values[AUTO_DECREASE],
	};
	return 0;
}

int concurrency_setting_parse(const char *text, struct slot_limit *slots, char *error)
{
	uint64_t count;
	int err;

	if (words_are(text, "auto"))
		return parse_auto(text, slots, error);
	err = count_parse(text, &count);
	if (err == -EINVAL)
		return text_refuse(err, error, text,
				   "not understood: max, a whole number, or auto min=1 max=200 "
				   "decrease=0.9");
	if (!err && count == UINT64_MAX) {
		*slots = (struct slot_limit){.kind = SLOTS_MAX};
		return 0;
	}
	if (err || count < 1 || count > SLOTS_COUNT_MAX)
		return text_refuse(-ERANGE, error, text, "out of bounds: max or 1 to 1000000");
	*slots = (struct slot_limit){.kind = SLOTS_COUNT, .count = (uint32_t)count};
	return 0;
}

void concurrency_setting_print(const struct slot_limit *slots, char *text)
{
	uint64_t values[AUTO_WORDS] = {slots->min, slots->max, slots->decrease};
	struct word words[AUTO_WORDS];

	switch (slots->kind) {
	case SLOTS_MAX:
		snprintf(text, SETTING_TEXT, "max");
		break;
	case SLOTS_COUNT:
		count_print(slots->count, text);
		break;
	case SLOTS_AUTO:
		auto_words(words, values);
		words_print("auto", words, AUTO_WORDS, text);
		break;
	}
}
