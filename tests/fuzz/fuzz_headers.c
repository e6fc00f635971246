/* fuzz_headers - any text as header fields, which become feedback. */
#include "fuzz.h"

#include "companions/header_value.h"
#include "companions/headers.h"

#include "core/limiter/feedback.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t NOW_NS = UINT64_C(1795424400) * NSEC_PER_SEC;

static void check_report(const struct header_report *report)
{
	FUZZ_CHECK(report->status >= 200 && report->status <= 999);
	FUZZ_CHECK(report->quota_count <= QUOTAS_MAX);
	FUZZ_CHECK(report->retry_after_ns <= DURATION_MAX_NS);
	for (uint32_t i = 0; i < report->quota_count; i++) {
		const struct header_quota *quota = &report->quotas[i];

		FUZZ_CHECK(quota->has_remaining || quota->has_limit);
		FUZZ_CHECK(!quota->has_remaining ||
			   (quota->reset_ns && quota->reset_ns <= DURATION_MAX_NS));
		FUZZ_CHECK(!quota->has_limit || quota->window_ns);
	}
}

/* All lines are outcomes, and only the first one is of work. */
static void check_feedback(const char *text)
{
	char error[ERROR_TEXT];
	struct outcome outcome;
	unsigned int lines = 0;
	int err;

	while (!(err = feedback_parse(&text, &outcome, error)))
		FUZZ_CHECK((outcome.kind == OUTCOME_NONE) == (lines++ > 0));
	FUZZ_CHECK(err == -ENOENT && lines);
}

/* Of a limiter without units a unit has a name that was given, or it is left out. */
static void try_names(struct header_report report)
{
	const struct settings settings = SETTINGS_DEFAULT;
	struct unit_names names = {.count = 0};

	FUZZ_CHECK(headers_add_name(&names, "tokens=tpm"));
	headers_name_units(&report, &names, &settings);
	FUZZ_CHECK(!headers_have_units(&report, &names) || report.quota_count);
	for (uint32_t i = 0; i < report.quota_count; i++)
		FUZZ_CHECK(!*report.quotas[i].unit || !strcmp(report.quotas[i].unit, "tpm"));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char error[ERROR_TEXT] = "", feedback[HEADERS_TEXT], *text = malloc(size + 1);
	struct header_report report;
	uint64_t number;
	int err;

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	err = headers_read(text, size, NOW_NS, &report, error);
	FUZZ_CHECK(!err || ((err == -EINVAL || err == -E2BIG) && *error));
	if (!err) {
		check_report(&report);
		try_names(report);
		FUZZ_CHECK(headers_print(&report, NULL, feedback) == strlen(feedback));
		check_feedback(feedback);
	}
	if (header_value_wait(text, NOW_NS, &number))
		FUZZ_CHECK(number <= DURATION_MAX_NS);
	if (header_value_count(text, &number))
		FUZZ_CHECK(number <= TOKENS_MAX);
	free(text);
	return 0;
}
