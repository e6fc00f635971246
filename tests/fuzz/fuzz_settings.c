/* fuzz_settings - any text as a config, its lines as each setting, and what must hold for them. */
#include "fuzz.h"

#include "core/values/settings.h"

#include <errno.h>
#include <string.h>

static void check_same(const struct settings *a, const struct settings *b)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		FUZZ_CHECK(setting_equal((enum setting_id)id, a, b));
	FUZZ_CHECK(overrides_equal(a->overrides, b->overrides));
}

static void check_refusal(int err, const char error[ERROR_TEXT])
{
	FUZZ_CHECK(err == -EINVAL || err == -ERANGE);
	FUZZ_CHECK(error[0] && memchr(error, '\0', ERROR_TEXT));
}

static void check_partition(const struct settings *settings, uint32_t index)
{
	struct settings share = settings_of_partition(settings, index);

	FUZZ_CHECK(share.burst >= 1 && share.burst <= settings->burst);
	FUZZ_CHECK(share.limit_count == settings->limit_count);
	for (uint32_t i = 0; i < share.limit_count; i++) {
		struct fraction flow = rate_fraction(&share.limits[i].rate);

		FUZZ_CHECK(flow.den && flow.num <= INT64_MAX && flow.den <= INT64_MAX);
		FUZZ_CHECK(rate_compare(&share.limits[i].rate, &settings->limits[i].rate) <= 0);
	}
}

/* Holds for settings that were accepted as a whole. */
static void check_settings(const struct settings *settings)
{
	size_t room = settings_room(settings);
	char *config = malloc(room);
	struct settings again = SETTINGS_DEFAULT;
	uint32_t count = settings_partition_count(settings);
	char error[ERROR_TEXT];
	size_t length;

	FUZZ_CHECK(config);
	length = settings_print(settings, config, room);
	FUZZ_CHECK(length == strlen(config) && length + 1 < room);
	FUZZ_CHECK(settings_parse(config, &again, error) == 0);
	check_same(settings, &again);
	FUZZ_CHECK(count >= 1 && count <= PARTITIONS_MAX);
	check_partition(settings, 0);
	check_partition(settings, count - 1);
	if (settings->reserve_hosts)
		check_partition(settings, count);
	settings_drop(&again);
	free(config);
}

static void try_config(const char *text, const struct settings *before)
{
	struct settings settings = settings_hold(before);
	char error[ERROR_TEXT] = "";
	int err = settings_parse(text, &settings, error);

	if (err) {
		check_refusal(err, error);
		check_same(&settings, before);
	} else {
		check_settings(&settings);
	}
	settings_drop(&settings);
}

static void try_setting(enum setting_id id, const char *text, const struct settings *before)
{
	struct settings settings = *before, again = *before;
	char error[ERROR_TEXT] = "", printed[SETTING_TEXT];
	int err = setting_parse(id, text, &settings, error);

	if (err) {
		check_refusal(err, error);
		check_same(&settings, before);
		return;
	}
	setting_print(id, &settings, printed);
	FUZZ_CHECK(memchr(printed, '\0', sizeof(printed)));
	FUZZ_CHECK(setting_parse(id, printed, &again, error) == 0);
	check_same(&settings, &again);
	if (settings_check(&settings, error) == 0)
		check_settings(&settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const char tuned[] = "rate=500/s:20 1000/90s\nburst=7\nrelease_interval=200ms\n"
				    "partitions.count=7\npartitions.reserve=1/s hosts=3\n"
				    "key.bob.rate=5/s\nkey.a%20b.burst=7\n";
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT], *text = malloc(size + 1), *rest = text, *line;

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	FUZZ_CHECK(settings_parse(tuned, &settings, error) == 0);
	try_config(text, &SETTINGS_DEFAULT);
	try_config(text, &settings);
	while ((line = strsep(&rest, "\n"))) {
		for (int id = 0; id < SETTING_COUNT; id++)
			try_setting((enum setting_id)id, line, &settings);
	}
	settings_drop(&settings);
	free(text);
	return 0;
}
