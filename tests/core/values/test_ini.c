/* Tests of ini: which limiters a file names, and what is refused, with its line. */
#include "core/values/ini.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct ini_section next_section(struct ini *ini)
{
	struct ini_section section = {.line = 0};
	char error[ERROR_TEXT] = "";

	if (ini_next(ini, &section, error) != 1)
		fail_msg("no section but '%s'", error);
	return section;
}

static void assert_ends(struct ini *ini)
{
	struct ini_section section;
	char error[ERROR_TEXT];

	assert_int_equal(ini_next(ini, &section, error), 0);
	assert_int_equal(ini_next(ini, &section, error), 0);
}

static void assert_body(const struct ini_section *section, const char *expected)
{
	assert_int_equal(section->length, strlen(expected));
	assert_memory_equal(section->body, expected, section->length);
}

static void assert_refused(const char *text, const char *expected)
{
	struct ini ini = {.at = text};
	struct ini_section section;
	char error[ERROR_TEXT] = "";
	int result;

	do
		result = ini_next(&ini, &section, error);
	while (result > 0);
	if (result != -EINVAL)
		fail_msg("'%s' is taken", text);
	assert_string_equal(error, expected);
}

static void test_a_file_without_sections_names_no_limiter(void **state)
{
	static const char *const texts[] = {
		"", "\n", " \t\r\n\n", "# only\n; comments", "  # indented\n\t;\n", "\v\f\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct ini ini = {.at = texts[i]};

		assert_ends(&ini);
		assert_string_equal(ini.at, "");
	}
}

static void test_each_section_has_its_path_its_lines_and_the_line_of_its_header(void **state)
{
	struct ini ini = {.at = "# services\n"
				"[orders]\n"
				"rate=500/s\n"
				"burst=7\n"
				"\n"
				"[orders/batch]\n"
				"rate=50/s\n"};
	struct ini_section section;

	(void)state;
	section = next_section(&ini);
	assert_string_equal(section.path, "orders");
	assert_body(&section, "rate=500/s\nburst=7\n\n");
	assert_int_equal(section.line, 2);
	section = next_section(&ini);
	assert_string_equal(section.path, "orders/batch");
	assert_body(&section, "rate=50/s\n");
	assert_int_equal(section.line, 6);
	assert_ends(&ini);
}

static void test_the_lines_of_a_section_are_settings_as_they_stand(void **state)
{
	struct ini ini = {.at = "[a]\n\t# slow\n; not yet\n rate = 5/s \nburst=9\r\n[b]\nrate=1/s"};
	struct settings settings = SETTINGS_DEFAULT;
	struct ini_section section = next_section(&ini);
	char error[ERROR_TEXT], text[SETTING_TEXT], *body;

	(void)state;
	body = strndup(section.body, section.length);
	assert_non_null(body);
	assert_int_equal(settings_parse(body, &settings, error), 0);
	free(body);
	setting_print(SETTING_RATE, &settings, text);
	assert_string_equal(text, "5/s");
	assert_int_equal(settings.burst, 9);
}

static void test_text_with_only_comments_is_blank(void **state)
{
	(void)state;
	assert_true(ini_is_blank(""));
	assert_true(ini_is_blank("\n \t\r\n# rate=1/s\n ; burst=2"));
	assert_false(ini_is_blank("\n# rate=1/s\nx\n"));
	assert_false(ini_is_blank("burst=2"));
}

static void test_the_top_of_the_tree_is_a_section(void **state)
{
	struct ini ini = {.at = "[/]\nmode=2775\n[a]\n"};
	struct ini_section section = next_section(&ini);

	(void)state;
	assert_string_equal(section.path, "");
	assert_body(&section, "mode=2775\n");
	section = next_section(&ini);
	assert_string_equal(section.path, "a");
	assert_ends(&ini);
}

static void test_owner_group_and_mode_stand_among_the_settings(void **state)
{
	char text[] = "rate=5/s\n owner = some one \r\n# group=x\nmode=3775\ngroup=100\nburst=9";
	struct settings settings = SETTINGS_DEFAULT;
	struct ini_owner owner;
	char error[ERROR_TEXT], rate[SETTING_TEXT];

	(void)state;
	assert_int_equal(ini_parse(text, &settings, &owner, error), 0);
	assert_string_equal(owner.user, "some one");
	assert_string_equal(owner.group, "100");
	assert_true(owner.has_access);
	assert_int_equal(owner.access, 03775);
	setting_print(SETTING_RATE, &settings, rate);
	assert_string_equal(rate, "5/s");
	assert_int_equal(settings.burst, 9);
}

static void test_part_of_an_owner_that_is_not_given_is_not_there(void **state)
{
	char text[] = "mode=0\n", none[] = "# nothing\n";
	struct settings settings = SETTINGS_DEFAULT;
	struct ini_owner owner;
	char error[ERROR_TEXT];

	(void)state;
	assert_int_equal(ini_parse(text, &settings, &owner, error), 0);
	assert_string_equal(owner.user, "");
	assert_string_equal(owner.group, "");
	assert_true(owner.has_access);
	assert_int_equal(owner.access, 0);
	assert_int_equal(ini_parse(none, &settings, &owner, error), 0);
	assert_false(owner.has_access);
}

static void test_a_wrong_owner_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *error;
	} wrong[] = {
		{"owner=", -EINVAL, "line 1: '': no value is given"},
		{"\n\ngroup = \n", -EINVAL, "line 3: '': no value is given"},
		{"burst=2\nmode=rwx", -EINVAL, "line 2: 'rwx': not a mode: such as 0755 or 2775"},
		{"mode=", -EINVAL, "line 1: '': not a mode: such as 0755 or 2775"},
		{"mode=0789", -EINVAL, "line 1: '0789': not a mode: such as 0755 or 2775"},
		{"mode=4755", -ERANGE, "line 1: '4755': out of bounds: a mode is 0 to 3777"},
		{"mode=777777777777777777777777", -ERANGE,
		 "line 1: '777777777777777777777777': out of bounds: a mode is 0 to 3777"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct settings settings = SETTINGS_DEFAULT;
		struct ini_owner owner;
		char text[64], error[ERROR_TEXT] = "";

		snprintf(text, sizeof(text), "%s", wrong[i].text);
		assert_int_equal(ini_parse(text, &settings, &owner, error), wrong[i].err);
		assert_string_equal(error, wrong[i].error);
	}
}

static void test_the_longest_name_of_a_user_is_taken_and_a_longer_one_refused(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	struct ini_owner owner;
	char text[INI_ACCOUNT_TEXT + 16], error[ERROR_TEXT];

	(void)state;
	snprintf(text, sizeof(text), "owner=%0*d", INI_ACCOUNT_TEXT - 1, 7);
	assert_int_equal(ini_parse(text, &settings, &owner, error), 0);
	assert_int_equal(strlen(owner.user), INI_ACCOUNT_TEXT - 1);
	snprintf(text, sizeof(text), "owner=%0*d", INI_ACCOUNT_TEXT, 7);
	assert_int_equal(ini_parse(text, &settings, &owner, error), -EINVAL);
	assert_non_null(strstr(error, "too long"));
}

static void test_a_mistake_in_a_setting_keeps_its_line_behind_an_owner(void **state)
{
	char text[] = "owner=root\nmode=0755\nrate=plenty\n";
	struct settings settings = SETTINGS_DEFAULT;
	struct ini_owner owner;
	char error[ERROR_TEXT];

	(void)state;
	assert_int_equal(ini_parse(text, &settings, &owner, error), -EINVAL);
	assert_memory_equal(error, "line 3: 'plenty': ", strlen("line 3: 'plenty': "));
}

static void test_the_last_line_needs_no_newline(void **state)
{
	struct ini header = {.at = "\n[a]"}, setting = {.at = "[a]\nrate=1/s"};
	struct ini_section section;

	(void)state;
	section = next_section(&header);
	assert_string_equal(section.path, "a");
	assert_body(&section, "");
	assert_int_equal(section.line, 2);
	assert_ends(&header);
	section = next_section(&setting);
	assert_body(&section, "rate=1/s");
	assert_ends(&setting);
}

static void test_white_space_around_a_header_and_carriage_returns_do_not_matter(void **state)
{
	struct ini ini = {.at = "\r\n \t[a]\v\f \r\nrate=1/s\r\n\t[b/c]\r\n"};
	struct ini_section section;

	(void)state;
	section = next_section(&ini);
	assert_string_equal(section.path, "a");
	assert_body(&section, "rate=1/s\r\n");
	assert_int_equal(section.line, 2);
	section = next_section(&ini);
	assert_string_equal(section.path, "b/c");
	assert_int_equal(section.line, 4);
	assert_ends(&ini);
}

static void test_a_name_may_have_any_byte_but_slashes_and_control_characters(void **state)
{
	static const char *const paths[] = {
		"a b", "a=b", "a]", "[a", "#a", "a.b", "caf\xc3\xa9", "\xff", "-", " ",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(paths); i++) {
		char text[64];
		struct ini ini = {.at = text};
		struct ini_section section;

		snprintf(text, sizeof(text), "[%s]\n", paths[i]);
		section = next_section(&ini);
		assert_string_equal(section.path, paths[i]);
		assert_ends(&ini);
	}
}

static void test_a_setting_outside_of_a_section_is_refused(void **state)
{
	(void)state;
	assert_refused("rate=1/s\n", "line 1: a setting outside of a section");
	assert_refused("# note\n\n  rate=1/s\n[a]\n", "line 3: a setting outside of a section");
	assert_refused("a]\n", "line 1: a setting outside of a section");
}

static void test_a_header_that_is_not_one_is_refused(void **state)
{
	static const char *const headers[] = {"[", "[]", "[a", "[a] b", "[a]x", "[a] # note"};

	(void)state;
	for (size_t i = 0; i < COUNT(headers); i++) {
		char text[64];

		snprintf(text, sizeof(text), "\n%s\n", headers[i]);
		assert_refused(text, "line 2: not a section: [LIMITER] or [LIMITER/CHILD]");
	}
}

static void test_a_name_that_no_limiter_can_have_is_refused(void **state)
{
	static const struct {
		const char *text;
		const char *error;
	} wrong[] = {
		{"[//]", "line 1: '': a name has at least one byte"},
		{"[/a]", "line 1: '': a name has at least one byte"},
		{"[a]\n[a/]", "line 2: '': a name has at least one byte"},
		{"[a//b]", "line 1: '': a name has at least one byte"},
		{"[a]\n\n[a/.b]", "line 3: '.b': a name does not start with a dot"},
		{"[..]", "line 1: '..': a name does not start with a dot"},
		{"# note\n[a\tb]", "line 2: 'a\tb': a name has no control characters"},
		{"[a/\x7f]", "line 1: '\x7f': a name has no control characters"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_refused(wrong[i].text, wrong[i].error);
}

/* `[x/x/.../x]` of @depth names of @bytes each; the caller frees it. */
static char *header_of(unsigned int depth, size_t bytes)
{
	char *text = malloc(depth * (bytes + 1) + 3), *at = text;

	assert_non_null(text);
	for (unsigned int i = 0; i < depth; i++) {
		*at++ = i ? '/' : '[';
		memset(at, 'x', bytes);
		at += bytes;
	}
	memcpy(at, "]", 2);
	return text;
}

static void assert_header_refused(unsigned int depth, size_t bytes, const char *words)
{
	char *text = header_of(depth, bytes);
	struct ini ini = {.at = text};
	struct ini_section section;
	char error[ERROR_TEXT];

	assert_int_equal(ini_next(&ini, &section, error), -EINVAL);
	assert_memory_equal(error, "line 1: ", strlen("line 1: "));
	assert_non_null(strstr(error, words));
	free(text);
}

static void test_the_longest_path_is_taken(void **state)
{
	char *text = header_of(DEPTH_MAX, NAME_BYTES_MAX);
	struct ini ini = {.at = text};
	struct ini_section section = next_section(&ini);

	(void)state;
	assert_int_equal(strlen(section.path), PATH_TEXT - 1);
	assert_memory_equal(section.path, text + 1, PATH_TEXT - 1);
	free(text);
}

static void test_a_path_too_long_or_too_deep_is_refused(void **state)
{
	(void)state;
	assert_header_refused(1, NAME_BYTES_MAX + 1, "': a name has at most 255 bytes");
	assert_header_refused(1, NAME_BYTES_MAX + 2, "line 1: a name has at most 255 bytes");
	assert_header_refused(1, PATH_TEXT - 1, "line 1: a name has at most 255 bytes");
	assert_header_refused(1, PATH_TEXT, "the path is too long");
	assert_header_refused(DEPTH_MAX + 1, 1, "limiters are nested at most 16 deep");
	assert_header_refused(DEPTH_MAX + 1, NAME_BYTES_MAX, "the path is too long");
}

static void test_lines_before_a_refused_line_are_read_first(void **state)
{
	struct ini ini = {.at = "[a]\nrate=1/s\n[b\n"};
	struct ini_section section = next_section(&ini);
	char error[ERROR_TEXT];

	(void)state;
	assert_string_equal(section.path, "a");
	assert_body(&section, "rate=1/s\n");
	assert_int_equal(ini_next(&ini, &section, error), -EINVAL);
	assert_string_equal(error, "line 3: not a section: [LIMITER] or [LIMITER/CHILD]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_without_sections_names_no_limiter),
		cmocka_unit_test(
			test_each_section_has_its_path_its_lines_and_the_line_of_its_header),
		cmocka_unit_test(test_the_lines_of_a_section_are_settings_as_they_stand),
		cmocka_unit_test(test_text_with_only_comments_is_blank),
		cmocka_unit_test(test_the_top_of_the_tree_is_a_section),
		cmocka_unit_test(test_owner_group_and_mode_stand_among_the_settings),
		cmocka_unit_test(test_part_of_an_owner_that_is_not_given_is_not_there),
		cmocka_unit_test(test_a_wrong_owner_is_refused_with_its_line),
		cmocka_unit_test(test_the_longest_name_of_a_user_is_taken_and_a_longer_one_refused),
		cmocka_unit_test(test_a_mistake_in_a_setting_keeps_its_line_behind_an_owner),
		cmocka_unit_test(test_the_last_line_needs_no_newline),
		cmocka_unit_test(
			test_white_space_around_a_header_and_carriage_returns_do_not_matter),
		cmocka_unit_test(test_a_name_may_have_any_byte_but_slashes_and_control_characters),
		cmocka_unit_test(test_a_setting_outside_of_a_section_is_refused),
		cmocka_unit_test(test_a_header_that_is_not_one_is_refused),
		cmocka_unit_test(test_a_name_that_no_limiter_can_have_is_refused),
		cmocka_unit_test(test_the_longest_path_is_taken),
		cmocka_unit_test(test_a_path_too_long_or_too_deep_is_refused),
		cmocka_unit_test(test_lines_before_a_refused_line_are_read_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
