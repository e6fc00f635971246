/* fuzz_log - a format, and lines of a log that are to have it; and lines as loads. */
#include "fuzz.h"

#include "companions/load.h"
#include "companions/log_format.h"
#include "companions/log_time.h"
#include "core/values/quantity.h"

#include <errno.h>
#include <string.h>

static const uint64_t LAST_NS = UINT64_C(531) * 366 * 86400 * NSEC_PER_SEC;

static void check_refusal(int err, const char error[ERROR_TEXT])
{
	FUZZ_CHECK(err == -EINVAL);
	FUZZ_CHECK(memchr(error, '\0', ERROR_TEXT) && *error);
}

/* A field is a text in the line, or not there if the format does not have it. */
static void check_field(bool has, const char *field, const char *line, size_t length)
{
	FUZZ_CHECK(has == (field != NULL));
	FUZZ_CHECK(!has || (field >= line && field + strlen(field) <= line + length));
}

static void try_line(const struct log_format *format, char *line)
{
	struct log_record record;
	char error[ERROR_TEXT] = "";
	size_t length = strlen(line);
	int err = log_format_read(format, line, &record, error);

	if (err) {
		check_refusal(err, error);
		return;
	}
	FUZZ_CHECK(record.at_ns <= LAST_NS);
	FUZZ_CHECK(record.cost <= TOKENS_MAX && (format->has[LOG_COST] || record.cost == 1));
	check_field(format->has[LOG_LIMITER], record.limiter, line, length);
	check_field(format->has[LOG_KEY], record.key, line, length);
}

/* A time is refused, or another of the same value can be written. */
static void try_time(const char *line)
{
	char text[QUANTITY_TEXT], error[ERROR_TEXT] = "";
	uint64_t at_ns = 0, again_ns = 0;
	int err = log_time_parse(line, &at_ns, error);

	if (err) {
		check_refusal(err, error);
		return;
	}
	seconds_print(at_ns, 9, text);
	FUZZ_CHECK(!log_time_parse(text, &again_ns, error) && again_ns == at_ns);
}

/* Readers of a load come in order, within its time. */
static void try_load(const char *line)
{
	enum { TRIED = 100 };
	static struct load load;
	char error[ERROR_TEXT] = "";
	int err = load_parse(&load, line, 3, error);

	if (err) {
		check_refusal(err, error);
		return;
	}
	FUZZ_CHECK(load.readers <= LOAD_READERS_MAX && load.tokens <= TOKENS_MAX);
	FUZZ_CHECK(!load.key || (*load.key && strlen(load.key) < 256));
	for (int i = 0; i < TRIED && load.next_ns != NEVER_NS; i++) {
		uint64_t before_ns = load.next_ns;

		FUZZ_CHECK(before_ns < load.for_ns);
		load_advance(&load);
		FUZZ_CHECK(load.next_ns >= before_ns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char *text = malloc(size + 1), *rest = text, *line, error[ERROR_TEXT] = "";
	struct log_format format;
	int err;

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	line = strsep(&rest, "\n");
	err = log_format_parse(&format, line, error);
	if (err)
		check_refusal(err, error);
	while (!err && (line = strsep(&rest, "\n"))) {
		try_time(line);
		try_load(line);
		try_line(&format, line);
	}
	free(text);
	return 0;
}
