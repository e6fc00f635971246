/*
 * fuzz_store - any text as a settings file, and what must hold for what is taken as one: by itself,
 * with the right checksum below it, and as settings whose file is damaged.
 */
#include "fuzz.h"

#include "fs/local/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static const char HEADER[] = "ratefs settings 1\n";

/* FNV-1a, 64 bit. */
static uint64_t checksum(const char *text, size_t length)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	while (length--)
		sum = (sum ^ (unsigned char)*text++) * UINT64_C(0x100000001b3);
	return sum;
}

static void check_same(const struct settings *a, const struct settings *b)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		FUZZ_CHECK(setting_equal((enum setting_id)id, a, b));
	FUZZ_CHECK(overrides_equal(a->overrides, b->overrides));
}

static bool is_same_owner(const struct owner *a, const struct owner *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->access == b->access;
}

/* The last line is the checksum of all before it. */
static bool is_whole(const char *text)
{
	static const char form[] = "sum=0123456789abcdef\n";
	size_t length = strlen(text);
	char last[sizeof(form)];

	if (length < strlen(form))
		return false;
	length -= strlen(form);
	snprintf(last, sizeof(last), "sum=%016" PRIx64 "\n", checksum(text, length));
	return !strcmp(text + length, last);
}

static void check_refusal(int err, const char error[ERROR_TEXT])
{
	/* Settings that do not fit together are out of bounds. */
	FUZZ_CHECK(err == -EINVAL || err == -ERANGE);
	FUZZ_CHECK(error[0] && memchr(error, '\0', ERROR_TEXT));
}

/* A text that was taken; its limiters are printed and taken again. */
static void check_taken(const char *text, const struct settings *settings,
			const struct owner *owner)
{
	struct settings again;
	struct owner same;
	char *printed, error[ERROR_TEXT];
	size_t length;

	FUZZ_CHECK(is_whole(text) && strncmp(text, HEADER, strlen(HEADER)) == 0);
	FUZZ_CHECK(owner->access <= 07777);
	FUZZ_CHECK(settings_check(settings, error) == 0);
	printed = store_print(settings, owner, &length);
	FUZZ_CHECK(printed && length == strlen(printed) && length < STORE_TEXT_MAX);
	FUZZ_CHECK(is_whole(printed));
	FUZZ_CHECK(store_parse(printed, &again, &same, error) == 0);
	check_same(settings, &again);
	FUZZ_CHECK(is_same_owner(owner, &same));
	settings_drop(&again);
	free(printed);
}

static bool try_text(const char *text)
{
	struct settings settings;
	struct owner owner;
	char error[ERROR_TEXT] = "";
	int err = store_parse(text, &settings, &owner, error);

	if (err)
		check_refusal(err, error);
	else
		check_taken(text, &settings, &owner);
	if (!err)
		settings_drop(&settings);
	return !err;
}

/* @body between what a file begins with and the right checksum, as @before says. */
static void try_whole(const char *before, const char *body)
{
	size_t room = strlen(before) + strlen(body) + sizeof("\nsum=0123456789abcdef\n"), length;
	char *text = malloc(room);

	if (!text)
		return;
	length = (size_t)snprintf(text, room, "%s%s", before, body);
	if (!length || text[length - 1] != '\n')
		text[length++] = '\n';
	snprintf(text + length, room - length, "sum=%016" PRIx64 "\n", checksum(text, length));
	FUZZ_CHECK(is_whole(text));
	try_text(text);
	free(text);
}

/* The file of @settings as it is, and then with a byte changed, lost, added, and cut off. */
static void try_damage(const struct settings *settings, uint64_t number)
{
	struct owner owner = {(uint32_t)number, (uint32_t)(number >> 32), number >> 7 & 07777};
	size_t length, at;
	char *text = store_print(settings, &owner, &length), *damaged = malloc(length + 2);
	char byte = (char)(number >> 24), error[ERROR_TEXT];
	struct settings again;
	struct owner same;

	FUZZ_CHECK(text && damaged);
	at = number % length;
	FUZZ_CHECK(try_text(text));
	FUZZ_CHECK(store_parse(text, &again, &same, error) == 0);
	check_same(settings, &again);
	FUZZ_CHECK(is_same_owner(&owner, &same));
	memcpy(damaged, text, length + 1);
	damaged[at] ^= byte ? byte : 1;
	FUZZ_CHECK(!try_text(damaged));
	for (unsigned int bit = 0; bit < 8; bit++) {
		damaged[at] = (char)(text[at] ^ 1 << bit);
		FUZZ_CHECK(!try_text(damaged));
	}
	memcpy(damaged + at, text + at + 1, length - at);
	FUZZ_CHECK(!try_text(damaged));
	memcpy(damaged + at + 1, text + at, length - at + 1);
	damaged[at] = byte ? byte : ' ';
	FUZZ_CHECK(!try_text(damaged));
	damaged[at] = '\0';
	FUZZ_CHECK(!try_text(damaged));
	settings_drop(&again);
	free(damaged);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const char owned[] = "ratefs settings 1\nuid=0\ngid=4294967295\naccess=755\n";
	struct settings settings = SETTINGS_DEFAULT;
	char *text = malloc(size + 1), error[ERROR_TEXT];
	uint64_t number;

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	try_text(text);
	try_whole("", text);
	try_whole(HEADER, text);
	try_whole(owned, text);
	/* Where to damage it is drawn from the text. */
	number = checksum(text, size);
	(void)settings_parse(text, &settings, error);
	try_damage(&settings, number ^ number >> 31);
	settings_drop(&settings);
	free(text);
	return 0;
}
