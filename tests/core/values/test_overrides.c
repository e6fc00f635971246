/* Tests of overrides: rates and bursts of single keys, as lines of `config`. */
#include "core/values/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct settings settings_of(const char *config)
{
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	if (settings_parse(config, &settings, error))
		fail_msg("%s", error);
	return settings;
}

static void change(struct settings *settings, const char *config)
{
	char error[ERROR_TEXT];

	if (settings_parse(config, settings, error))
		fail_msg("%s", error);
}

static void assert_lines(const struct settings *settings, const char *lines)
{
	assert_string_equal(overrides_text(settings->overrides), lines);
}

static void assert_refused(const char *config, int err, const char *words)
{
	struct settings settings = settings_of("key.bob.rate=5/s\n");
	char error[ERROR_TEXT] = "";
	int got = settings_parse(config, &settings, error);

	if (got != err)
		fail_msg("'%s' gives %d, not %d", config, got, err);
	if (!strstr(error, words))
		fail_msg("'%s' is not in '%s'", words, error);
	assert_lines(&settings, "key.bob.rate=5/s\n");
	settings_drop(&settings);
}

static void test_lines_are_sorted_and_the_last_of_a_value_counts(void **state)
{
	struct settings settings = settings_of("key.b.rate=2/s\nkey.a.rate=60/min\nkey.b.burst=4\n"
					       "key.b.rate=3.0/s\nburst=7\nkey.a.b.rate=max\n");

	(void)state;
	assert_int_equal(settings.burst, 7);
	assert_int_equal(overrides_count(settings.overrides), 3);
	assert_lines(&settings, "key.a.rate=60/min\nkey.a.b.rate=max\nkey.b.burst=4\n"
				"key.b.rate=3/s\n");
	change(&settings, "key.b.rate = default\nkey.a.burst=9\n");
	assert_lines(&settings, "key.a.burst=9\nkey.a.rate=60/min\nkey.a.b.rate=max\n"
				"key.b.burst=4\n");
	change(&settings, "key.a.burst=default\nkey.a.rate=default\nkey.a.b.rate=default\n"
			  "key.b.burst=default\nkey.c.rate=default\n");
	assert_null(settings.overrides);
	settings_drop(&settings);
}

static void test_the_rate_of_a_key_has_units_of_key_rate_alone(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	struct override found;
	char error[ERROR_TEXT];

	(void)state;
	assert_int_equal(settings_parse("key_rate=1/s x=1/s tpm=9/s:5\nkey.a.rate=5/s tpm=2/s:3 "
					"x=7/s\nkey.b.rate=x=1/s\nkey.c.burst=4",
					&settings, error),
			 0);
	assert_true(overrides_find(settings.overrides, "a", 1, &found));
	assert_true(found.has_rate && found.rate.amount == 5);
	assert_int_equal(found.unit_count, 2);
	assert_string_equal(found.units[0].unit, "tpm");
	assert_int_equal(found.units[0].burst, 3);
	assert_int_equal(found.units[1].rate.amount, 7);
	assert_int_equal(settings_parse("key.d.rate=tp=1/s", &settings, error), -ERANGE);
	assert_non_null(strstr(error, "key.d.rate has the unit tp:"));
	assert_int_equal(settings_parse("key.d.rate=1/s x=1/s tpmx=1/s", &settings, error),
			 -ERANGE);
	assert_non_null(strstr(error, "the unit tpmx:"));
	assert_int_equal(settings_parse("key_rate=1/s tpm=1/s", &settings, error), -ERANGE);
	assert_non_null(strstr(error, "key.a.rate has the unit x:"));
	assert_int_equal(settings_parse("key_rate=x=1/s\nkey.a.rate=default", &settings, error), 0);
	assert_int_equal(settings_parse("key.b.rate=default\nkey_rate=max", &settings, error), 0);
	settings_drop(&settings);
}

static void test_the_rate_of_a_key_may_have_windows_that_key_rate_has_not(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	struct override found;
	char error[ERROR_TEXT];

	(void)state;
	change(&settings, "key_rate=1/s t=9/day@00:00\nkey.a.rate=5/day@12:00 2/s t=3/day@12:00\n"
			  "key.b@day@.rate=max\nkey.c.rate=4/month@1");
	assert_true(overrides_find(settings.overrides, "a", 1, &found));
	assert_int_equal(found.rate.amount, 2);
	assert_int_equal(found.unit_count, 2);
	assert_int_equal(found.units[0].rate.kind, RATE_DAY);
	assert_string_equal(found.units[0].unit, "");
	assert_int_equal(overrides_windows(settings.overrides), 1 << RATE_DAY | 1 << RATE_MONTH);
	/* Windows of a unit are those of key_rate. */
	assert_int_equal(settings_parse("key.d.rate=t=1/s", &settings, error), -ERANGE);
	assert_non_null(strstr(error, "key.d.rate has the unit t:"));
	assert_int_equal(settings_parse("key.d.rate=t=1/h@:00", &settings, error), -ERANGE);
	assert_int_equal(settings_parse("key_rate=1/s t=9/s", &settings, error), -ERANGE);
	/* Keys have up to eight limits in all. */
	change(&settings, "key_rate=t=1/day@00:00 u=1/s v=1/s w=1/s x=1/s");
	change(&settings, "key.e.rate=1/h@:00");
	assert_int_equal(settings_parse("key.f.rate=1/year@jan-1", &settings, error), -ERANGE);
	assert_non_null(strstr(error, "more than 8 limits"));
	change(&settings, "key.a.rate=default\nkey.c.rate=default\nkey.e.rate=default");
	assert_int_equal(overrides_windows(settings.overrides), 0);
	settings_drop(&settings);
}

static void test_any_name_of_a_key_comes_back(void **state)
{
	static const char *const names[] = {"a b", "a=b",	  "a%b", "a.rate", "\n", "\x7f",
					    "%41", "gr\xc3\xbcn", "#",	 "[x]",	   " "};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct override_edits edits = {.text = NULL};
		struct overrides *made = NULL;
		struct settings settings;
		struct override found;
		char error[ERROR_TEXT];

		assert_int_equal(overrides_edit(&edits, names[i], OVERRIDE_RATE, "7/s\n", error),
				 0);
		assert_int_equal(overrides_apply(&edits, &made, error), 0);
		settings = settings_of(overrides_text(made));
		assert_true(overrides_equal(made, settings.overrides));
		assert_true(overrides_find(settings.overrides, names[i], strlen(names[i]), &found));
		assert_true(found.has_rate && found.rate.amount == 7 && !found.burst);
		assert_false(overrides_find(settings.overrides, "x", 1, &found));
		overrides_end_edits(&edits);
		overrides_drop(made);
		settings_drop(&settings);
	}
}

static void test_lines_that_are_none_are_refused(void **state)
{
	char line[2 * OVERRIDE_NAME_TEXT] = "key.";

	(void)state;
	assert_refused("key.bob=5/s\n", -EINVAL, "key.KEY.rate");
	assert_refused("key.bob.min=5/s\n", -EINVAL, "key.KEY.rate");
	assert_refused("key..rate=5/s\n", -EINVAL, "name of a key");
	assert_refused("key..x.rate=5/s\n", -EINVAL, "name of a key");
	assert_refused("key.a/b.rate=5/s\n", -EINVAL, "name of a key");
	assert_refused("key.a%00.rate=5/s\n", -EINVAL, "name of a key");
	assert_refused("key.a%2.rate=5/s\n", -EINVAL, "name of a key");
	assert_refused("key.a%2Fb.rate=5/s\n", -EINVAL, "name of a key");
	assert_refused("key.bob.rate=fast\n", -EINVAL, "fast");
	assert_refused("key.bob.rate=1/s\nkey.bob.burst=0\n", -ERANGE, "line 2");
	memset(line + strlen(line), 'n', NAME_BYTES_MAX + 1);
	strcat(line, ".rate=1/s");
	assert_refused(line, -EINVAL, "name of a key");
}

static bool note_name(void *argument, const char *name)
{
	strcat(argument, name);
	strcat(argument, " ");
	return true;
}

static void note_change(void *argument, const char *what, const char *value, const char *was)
{
	sprintf((char *)argument + strlen(argument), "%s=%s (%s) ", what, value, was);
}

static void test_differences_are_found_by_key_and_by_value(void **state)
{
	struct settings a = settings_of("key.a.rate=1/s\nkey.b%20c.burst=2\nkey.c.rate=3/s\n");
	struct settings b = settings_of("key.a.rate=1/s\nkey.b%20c.burst=3\nkey.b%20c.rate=1/s\n"
					"key.d.rate=4/s\n");
	char names[SETTING_TEXT] = "", changes[SETTING_TEXT] = "";

	(void)state;
	overrides_compare(a.overrides, b.overrides, note_name, names);
	assert_string_equal(names, "b c c d ");
	overrides_changes(a.overrides, b.overrides, note_change, changes);
	assert_string_equal(changes, "key.b%20c.burst=3 (2) key.b%20c.rate=1/s (default) "
				     "key.c.rate=default (3/s) key.d.rate=4/s (default) ");
	settings_drop(&a);
	settings_drop(&b);
}

static void test_a_limiter_has_65536_keys_with_overrides_and_no_more(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	struct override_edits edits = {.text = NULL};
	struct override found;
	char name[16], error[ERROR_TEXT];

	(void)state;
	for (unsigned int i = 0; i < OVERRIDES_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i * 7919u % OVERRIDES_MAX);
		assert_int_equal(overrides_edit(&edits, name, OVERRIDE_BURST, "2", error), 0);
		assert_int_equal(overrides_edit(&edits, name, OVERRIDE_RATE, name, error), 0);
	}
	assert_int_equal(overrides_apply(&edits, &settings.overrides, error), 0);
	overrides_end_edits(&edits);
	assert_int_equal(overrides_count(settings.overrides), OVERRIDES_MAX);
	for (unsigned int i = 0; i < OVERRIDES_MAX; i += 97) {
		snprintf(name, sizeof(name), "%u", i);
		assert_true(overrides_find(settings.overrides, name, strlen(name), &found));
		assert_int_equal(found.burst, 2);
		assert_int_equal(found.rate.amount, i);
	}
	assert_int_equal(settings_parse("key.more.rate=1/s\n", &settings, error), -ENOSPC);
	assert_non_null(strstr(error, "65536"));
	change(&settings, "key.7.rate=default\nkey.7.burst=default\nkey.more.rate=1/s\n");
	assert_int_equal(overrides_count(settings.overrides), OVERRIDES_MAX);
	settings_drop(&settings);
}

static void test_their_lines_have_8_mib_and_no_more(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	struct override_edits edits = {.text = NULL};
	char name[NAME_BYTES_MAX + 1], error[ERROR_TEXT];

	(void)state;
	for (unsigned int i = 0; i < OVERRIDES_TEXT_MAX / (3 * 256); i++) {
		memset(name, ' ', sizeof(name) - 1);
		snprintf(name, sizeof(name), "%0*u", 8, i);
		name[8] = ' ';
		name[NAME_BYTES_MAX] = '\0';
		assert_int_equal(overrides_edit(&edits, name, OVERRIDE_RATE, "1000/s", error), 0);
	}
	assert_int_equal(overrides_apply(&edits, &settings.overrides, error), 0);
	memset(name, '=', NAME_BYTES_MAX);
	for (unsigned int i = 0; i < 200; i++) {
		name[0] = (char)('A' + i % 26);
		name[1] = (char)('A' + i / 26);
		assert_int_equal(overrides_edit(&edits, name, OVERRIDE_RATE, "1/s", error), 0);
	}
	assert_int_equal(overrides_apply(&edits, &settings.overrides, error), -ENOSPC);
	assert_non_null(strstr(error, "8388608"));
	overrides_end_edits(&edits);
	settings_drop(&settings);
}

static void test_an_override_is_a_limit_unless_it_is_max(void **state)
{
	struct settings settings = settings_of("key.a.rate=max\nkey.a.burst=4\n");

	(void)state;
	assert_false(settings_limit(&settings));
	change(&settings, "key.b.rate=0\n");
	assert_true(settings_limit(&settings));
	assert_false(overrides_are_strict(settings.overrides));
	change(&settings, "key.c,strict.rate=9/s\nkey.b.rate=10/60s,strict\n");
	assert_true(overrides_are_strict(settings.overrides));
	change(&settings, "key.b.rate=default\n");
	assert_false(overrides_are_strict(settings.overrides));
	settings_drop(&settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_are_sorted_and_the_last_of_a_value_counts),
		cmocka_unit_test(test_the_rate_of_a_key_has_units_of_key_rate_alone),
		cmocka_unit_test(test_the_rate_of_a_key_may_have_windows_that_key_rate_has_not),
		cmocka_unit_test(test_any_name_of_a_key_comes_back),
		cmocka_unit_test(test_lines_that_are_none_are_refused),
		cmocka_unit_test(test_differences_are_found_by_key_and_by_value),
		cmocka_unit_test(test_a_limiter_has_65536_keys_with_overrides_and_no_more),
		cmocka_unit_test(test_their_lines_have_8_mib_and_no_more),
		cmocka_unit_test(test_an_override_is_a_limit_unless_it_is_max),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
