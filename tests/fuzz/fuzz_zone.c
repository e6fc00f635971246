/*
 * fuzz_zone - any bytes as the file of a time zone: its clocks are at most a day from UTC, and
 * windows of the calendar follow each other by them.
 */
#include "fuzz.h"

#include "core/values/calendar.h"
#include "core/values/zone.h"
#include "fs/base/tzif.h"

#include <errno.h>
#include <string.h>

static struct tzif zone;

static int find(const char *name, uint16_t *number)
{
	(void)name;
	*number = 1;
	return 0;
}

static const char *name_of(uint16_t number)
{
	(void)number;
	return "Fuzz";
}

static int32_t offset_s(uint16_t number, int64_t utc_s)
{
	(void)number;
	return tzif_offset_s(&zone, utc_s);
}

static const struct zones ZONES = {find, name_of, offset_s};

/* Each time is in one window, and the next one begins where it ends. */
static void check_windows(const char *text, int64_t utc_s)
{
	char why[ERROR_TEXT];
	struct rate rate;
	int64_t begin_s, end_s;

	FUZZ_CHECK(calendar_parse(text, &rate, why) == 0);
	begin_s = calendar_begin_s(&rate, utc_s);
	end_s = calendar_end_s(&rate, utc_s);
	FUZZ_CHECK(begin_s <= utc_s && utc_s < end_s);
	FUZZ_CHECK(calendar_end_s(&rate, end_s) > end_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const char *const texts[] = {"1/day@00:00,Fuzz", "1/day@02:30,Fuzz",
					    "1/week@sun,Fuzz", "1/month@31,Fuzz",
					    "1/year@feb-29,Fuzz"};
	static const int64_t SECONDS = INT64_C(4400000000); /* until 2109 */
	/* A copy of its own: the sanitizer sees what is read behind it. */
	unsigned char *bytes = malloc(size + !size);
	int err;

	if (!bytes)
		return 0;
	if (size)
		memcpy(bytes, input, size);
	zone_use(&ZONES);
	err = tzif_parse(bytes, size, &zone);
	FUZZ_CHECK(err == 0 || err == -EINVAL || err == -ENOMEM);
	for (int64_t utc_s = 0; !err && utc_s < SECONDS; utc_s += SECONDS / 97) {
		int32_t offset = tzif_offset_s(&zone, utc_s);

		FUZZ_CHECK(offset >= -TZIF_OFFSET_MAX_S && offset <= TZIF_OFFSET_MAX_S);
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
			check_windows(texts[i], utc_s);
	}
	tzif_free(&zone);
	free(bytes);
	return 0;
}
