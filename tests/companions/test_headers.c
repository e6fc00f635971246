/*
 * Tests of headers: examples of header fields that services have published, by source, and the
 * lines for feedback that they make.
 */
#include "companions/headers.h"
#include "companions/header_value.h"

#include "core/limiter/feedback.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SEC	     UINT64_C(1000000000)

/* Where an example has no status it is 200, and where its date is not told, @now_s is. */
static const struct {
	const char *source;
	uint64_t now_s; /* since 1970 */
	const char *fields;
	const char *feedback;
} PUBLISHED[] = {
	{"draft-ietf-httpapi-ratelimit-headers-10, 4", 0,
	 "HTTP/1.1 200 OK\n"
	 "RateLimit: \"default\";r=50;t=30\n",
	 "200 remaining=50 reset=30s\n"},
	{"draft-ietf-httpapi-ratelimit-headers-10, 3.2", 0,
	 "HTTP/1.1 200 OK\n"
	 "RateLimit-Policy: \"permin\";q=50;w=60,\"perhr\";q=1000;w=3600\n",
	 "200 limit=50 window=1min\n"},
	{"draft-ietf-httpapi-ratelimit-headers-10, 3.2: quota units are units", 0,
	 "HTTP/1.1 200 OK\n"
	 "RateLimit-Policy: \"peruser\";q=65535;qu=\"content-bytes\";w=10;pk=:sdfjLJUOUH==:\n",
	 "200 unit=content_bytes limit=65535 window=10s\n"},
	{"draft-ietf-httpapi-ratelimit-headers-10, 4.2: no reset", 0,
	 "HTTP/1.1 200 OK\n"
	 "RateLimit: \"default\";r=999;pk=:dHJpYWwxMjEzMjM=:\n",
	 "200\n"},
	{"draft-ietf-httpapi-ratelimit-headers-10, 6", 0,
	 "HTTP/1.1 301 Moved Permanently\n"
	 "Location: /foo/123\n"
	 "RateLimit: \"problemPolicy\";r=0;t=10\n",
	 "301 remaining=0 reset=10s\n"},
	{"draft-ietf-httpapi-ratelimit-headers-08, 4", 0,
	 "HTTP/1.1 200 OK\n"
	 "RateLimit-Policy: default;l=100;w=10\n"
	 "RateLimit: default;r=50;t=5\n",
	 "200 remaining=50 reset=5s limit=100 window=10s\n"},
	{"draft-ietf-httpapi-ratelimit-headers-07, 3.5", 0,
	 "HTTP/1.1 200 OK\n"
	 "RateLimit-Policy: 100;w=10\n"
	 "RateLimit: limit=100, remaining=50, reset=5\n",
	 "200 remaining=50 reset=5s limit=100 window=10s\n"},
	{"draft-ietf-httpapi-ratelimit-headers-07, 3.5", 0,
	 "HTTP/1.1 200 OK\n"
	 "RateLimit-Policy: 10;w=1, 50;w=60, 1000;w=3600, 5000;w=86400\n",
	 "200 limit=10 window=1s\nquota limit=50 window=1min\n"},
	{"draft-ietf-httpapi-ratelimit-headers-07, 6.5", 0,
	 "HTTP/1.1 200 OK\n"
	 "Date: Tue, 15 Nov 1994 08:00:00 GMT\n"
	 "RateLimit: limit=1, remaining=1, reset=36000\n",
	 "200 remaining=1 reset=10h\n"},
	{"RFC 9110, 10.2.3: Retry-After", 946684790,
	 "HTTP/1.1 503 Service Unavailable\n"
	 "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\n",
	 "503 retry-after=9s\n"},
	{"RFC 9110, 10.2.3: Retry-After", 0,
	 "HTTP/1.1 503 Service Unavailable\n"
	 "Retry-After: 120\n",
	 "503 retry-after=2min\n"},
	{"developers.cloudflare.com/fundamentals/api/reference/limits", 0,
	 "HTTP/2 200\n"
	 "Ratelimit: \"default\";r=50;t=30\n"
	 "Ratelimit-Policy: \"burst\";q=100;w=60\n",
	 "200 remaining=50 reset=30s\nquota limit=100 window=1min\n"},
	{"developer.github.com/changes/2013-07-02-rate-limit-reset", 1372700800,
	 "HTTP/1.1 200 OK\n"
	 "Status: 200 OK\n"
	 "X-RateLimit-Limit: 60\n"
	 "X-RateLimit-Remaining: 42\n"
	 "X-RateLimit-Reset: 1372700873\n",
	 "200 remaining=42 reset=73s\n"},
	{"docs.github.com/rest/overview/resources-in-the-rest-api: rate limiting", 0,
	 "HTTP/2 403\n"
	 "Date: Tue, 20 Aug 2013 14:50:41 GMT\n"
	 "X-RateLimit-Limit: 60\n"
	 "X-RateLimit-Remaining: 0\n"
	 "X-RateLimit-Reset: 1377013266\n",
	 "throttled remaining=0 reset=3025s\n"},
	{"docs.gitlab.com/ee/user/gitlab_com: HAProxy API throttle", 1563325100,
	 "HTTP/1.1 200 OK\n"
	 "RateLimit-Limit: 600\n"
	 "RateLimit-Observed: 6\n"
	 "RateLimit-Remaining: 594\n"
	 "RateLimit-Reset: 1563325137\n"
	 "RateLimit-ResetTime: Wed, 17 Jul 2019 00:58:57 GMT\n",
	 "200 remaining=594 reset=37s\n"},
	{"docs.gitlab.com: user_and_ip_rate_limits", 1609844370,
	 "HTTP/1.1 429 Too Many Requests\n"
	 "RateLimit-Limit: 60\n"
	 "RateLimit-Name: throttle_authenticated_web\n"
	 "RateLimit-Observed: 67\n"
	 "RateLimit-Remaining: 0\n"
	 "RateLimit-Reset: 1609844400\n"
	 "RateLimit-ResetTime: Tue, 05 Jan 2021 11:00:00 GMT\n"
	 "Retry-After: 30\n",
	 "429 retry-after=30s remaining=0 reset=30s\n"},
	{"gitlab.com/gitlab-org/gitlab/-/issues/199738", 0,
	 "HTTP/1.1 429 Too Many Requests\n"
	 "Server: nginx\n"
	 "Date: Thu, 30 Jan 2020 14:14:16 GMT\n"
	 "Content-Type: application/json\n"
	 "Content-Length: 89\n"
	 "RateLimit-Limit: 600\n"
	 "RateLimit-Observed: 5\n"
	 "RateLimit-Remaining: 595\n"
	 "RateLimit-Reset: 1580393717\n"
	 "RateLimit-ResetTime: Thu, 30 Jan 2020 14:15:17 GMT\n",
	 "429 remaining=595 reset=61s\n"},
	{"developer.okta.com/docs/reference/rl-best-practices", 1609459180,
	 "HTTP/1.1 200 OK\n"
	 "X-Rate-Limit-Limit: 1200\n"
	 "X-Rate-Limit-Remaining: 1199\n"
	 "X-Rate-Limit-Reset: 1609459200\n",
	 "200 remaining=1199 reset=20s\n"},
	{"discord.com/developers/docs/topics/rate-limits", 1470173022,
	 "HTTP/1.1 200 OK\n"
	 "X-RateLimit-Limit: 5\n"
	 "X-RateLimit-Remaining: 0\n"
	 "X-RateLimit-Reset: 1470173023\n"
	 "X-RateLimit-Reset-After: 1\n"
	 "X-RateLimit-Bucket: abcd1234\n",
	 "200 remaining=0 reset=1s\n"},
	{"w3c.github.io/w3c-api", 1439472700,
	 "HTTP/1.1 200 OK\n"
	 "X-RateLimit-Limit: 5000\n"
	 "X-RateLimit-Remaining: 4524\n"
	 "X-RateLimit-Reset: 1439472737\n",
	 "200 remaining=4524 reset=37s\n"},
	{"developer.unipile.com/v2.0/reference/rate-limit", 0,
	 "HTTP/1.1 200 OK\n"
	 "x-ratelimit-limit: 50\n"
	 "x-ratelimit-remaining: 12\n"
	 "x-ratelimit-reset: 24\n",
	 "200 remaining=12 reset=24s\n"},
	{"docs.statbot.net/docs/api/schemas/ratelimitheaders", 0,
	 "HTTP/1.1 429 Too Many Requests\n"
	 "x-ratelimit-limit: 10\n"
	 "x-ratelimit-remaining: 5\n"
	 "x-ratelimit-reset: 60\n"
	 "retry-after: 30\n",
	 "429 retry-after=30s remaining=5 reset=1min\n"},
	{"community.openai.com/t/1268905", 0,
	 "HTTP/2 200\n"
	 "x-ratelimit-limit-requests: 5000\n"
	 "x-ratelimit-limit-tokens: 160000\n"
	 "x-ratelimit-limit-tokens_usage_based: 160000\n"
	 "x-ratelimit-remaining-requests: 4999\n"
	 "x-ratelimit-remaining-tokens: 159976\n"
	 "x-ratelimit-remaining-tokens_usage_based: 159976\n"
	 "x-ratelimit-reset-requests: 12ms\n"
	 "x-ratelimit-reset-tokens: 9ms\n"
	 "x-ratelimit-reset-tokens_usage_based: 9ms\n",
	 "200 remaining=4999 reset=12ms\nquota unit=tokens remaining=159976 reset=9ms\n"},
	{"platform.openai.com/docs/guides/rate-limits: rate limits in headers", 0,
	 "HTTP/2 200\n"
	 "x-ratelimit-limit-requests: 60\n"
	 "x-ratelimit-limit-tokens: 150000\n"
	 "x-ratelimit-remaining-requests: 59\n"
	 "x-ratelimit-remaining-tokens: 149984\n"
	 "x-ratelimit-reset-requests: 1s\n"
	 "x-ratelimit-reset-tokens: 6m0s\n",
	 "200 remaining=59 reset=1s\nquota unit=tokens remaining=149984 reset=22500ms\n"},
	{"community.openai.com/t/541210, request 2", 0,
	 "HTTP/2 200\n"
	 "x-ratelimit-limit-requests: 500\n"
	 "x-ratelimit-limit-tokens: 1500000\n"
	 "x-ratelimit-limit-tokens_usage_based: 1500000\n"
	 "x-ratelimit-remaining-requests: 499\n"
	 "x-ratelimit-remaining-tokens: 1482750\n"
	 "x-ratelimit-remaining-tokens_usage_based: 1490773\n"
	 "x-ratelimit-reset-requests: 120ms\n"
	 "x-ratelimit-reset-tokens: 16m33.562s\n"
	 "x-ratelimit-reset-tokens_usage_based: 8m51.438s\n",
	 "200 remaining=499 reset=120ms\nquota unit=tokens remaining=1482750 reset=1s\n"},
	{"learn.microsoft.com/en-us/answers/questions/5625878: of tokens, and not known", 0,
	 "HTTP/1.1 200 OK\n"
	 "x-ratelimit-limit-tokens: -1\n"
	 "x-ratelimit-remaining-tokens: -1\n"
	 "x-ratelimit-reset-tokens: 0\n",
	 "200\n"},
	{"CRAN, tidyllm/tests/testthat/claude/api.anthropic.com/v1/messages-e050b5-POST.R", 0,
	 "HTTP/2 200\n"
	 "date: Thu, 21 Aug 2025 12:41:00 GMT\n"
	 "anthropic-ratelimit-input-tokens-limit: 80000\n"
	 "anthropic-ratelimit-input-tokens-remaining: 80000\n"
	 "anthropic-ratelimit-input-tokens-reset: 2025-08-21T12:40:59Z\n"
	 "anthropic-ratelimit-requests-limit: 1000\n"
	 "anthropic-ratelimit-requests-remaining: 999\n"
	 "anthropic-ratelimit-requests-reset: 2025-08-21T12:40:59Z\n",
	 "200\n"},
};

static int read_text(const char *text, uint64_t now_s, char feedback[HEADERS_TEXT])
{
	char error[ERROR_TEXT] = "";
	struct header_report report;
	int err = headers_read(text, strlen(text), now_s * SEC, &report, error);

	if (err)
		snprintf(feedback, HEADERS_TEXT, "%s", error);
	else
		headers_print(&report, NULL, feedback);
	return err;
}

/* Has all lines of @text be feedback. */
static void assert_is_feedback(const char *text)
{
	char error[ERROR_TEXT];
	struct outcome outcome;
	int err;

	while (!(err = feedback_parse(&text, &outcome, error)))
		;
	if (err != -ENOENT)
		fail_msg("%s", error);
}

static void assert_feedback(const char *source, const char *text, uint64_t now_s,
			    const char *expected)
{
	char feedback[HEADERS_TEXT];

	if (read_text(text, now_s, feedback) || strcmp(feedback, expected) != 0)
		fail_msg("%s: '%s', not '%s'", source, feedback, expected);
	assert_is_feedback(feedback);
}

static void test_published_examples_make_feedback(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(PUBLISHED); i++)
		assert_feedback(PUBLISHED[i].source, PUBLISHED[i].fields, PUBLISHED[i].now_s,
				PUBLISHED[i].feedback);
}

static void test_a_quota_that_fills_little_by_little_holds_until_the_next_token(void **state)
{
	(void)state;
	assert_feedback("requests",
			"HTTP/2 200\n"
			"x-ratelimit-limit-requests: 5000\n"
			"x-ratelimit-remaining-requests: 100\n"
			"x-ratelimit-reset-requests: 58.8s\n",
			0, "200 remaining=100 reset=12ms\n");
	assert_feedback("full",
			"HTTP/2 200\n"
			"x-ratelimit-limit-requests: 5000\n"
			"x-ratelimit-remaining-requests: 5000\n"
			"x-ratelimit-reset-requests: 0s\n",
			0, "200\n");
	/* 32 of 40 are used, and 2 a second flow off. */
	assert_feedback("X-Shopify-Shop-Api-Call-Limit",
			"HTTP/2 200\nX-Shopify-Shop-Api-Call-Limit: 32/40\n", 0,
			"200 remaining=8 reset=500ms limit=40 window=20s\n");
	assert_feedback("more than all",
			"HTTP/2 429\nX-Shopify-Shop-Api-Call-Limit: 41/40\nRetry-After: 2.0\n", 0,
			"429 retry-after=2s\n");
	assert_feedback("batches",
			"HTTP/1.1 200\n"
			"X-RateLimit-Limit: 100\n"
			"X-RateLimit-Remaining: 7\n"
			"X-RateLimit-Interval-Seconds: 10\n"
			"X-RateLimit-FillRate: 20\n",
			0, "200 remaining=7 reset=10s limit=20 window=10s\n");
}

static void test_a_quota_of_a_unit_holds_for_a_second_or_until_the_reset(void **state)
{
	(void)state;
	assert_feedback("thousands come in a second",
			"HTTP/2 200\n"
			"x-ratelimit-limit-tokens: 90000\n"
			"x-ratelimit-remaining-tokens: 1200\n"
			"x-ratelimit-reset-tokens: 59.2s\n",
			0, "200 unit=tokens remaining=1200 reset=1s\n");
	assert_feedback("full sooner",
			"HTTP/2 200\n"
			"x-ratelimit-limit-tokens: 90000\n"
			"x-ratelimit-remaining-tokens: 89400\n"
			"x-ratelimit-reset-tokens: 400ms\n",
			0, "200 unit=tokens remaining=89400 reset=400ms\n");
	assert_feedback("a token in a minute",
			"HTTP/2 200\n"
			"x-ratelimit-limit-output-tokens: 10\n"
			"x-ratelimit-remaining-output-tokens: 8\n"
			"x-ratelimit-reset-output-tokens: 2m\n",
			0, "200 unit=output_tokens remaining=8 reset=1min\n");
	assert_feedback("several units",
			"HTTP/2 200\n"
			"date: Thu, 21 Aug 2025 12:41:00 GMT\n"
			"anthropic-ratelimit-requests-limit: 50\n"
			"anthropic-ratelimit-requests-remaining: 48\n"
			"anthropic-ratelimit-requests-reset: 2025-08-21T12:41:02Z\n"
			"anthropic-ratelimit-input-tokens-limit: 30000\n"
			"anthropic-ratelimit-input-tokens-remaining: 12000\n"
			"anthropic-ratelimit-input-tokens-reset: 2025-08-21T12:41:36Z\n"
			"anthropic-ratelimit-output-tokens-limit: 8000\n"
			"anthropic-ratelimit-output-tokens-remaining: 0\n"
			"anthropic-ratelimit-output-tokens-reset: 2025-08-21T12:42:00Z\n",
			0,
			"200 remaining=48 reset=1s\n"
			"quota unit=input_tokens remaining=12000 reset=1s\n"
			"quota unit=output_tokens remaining=0 reset=1s\n");
	assert_feedback("a name that is no unit",
			"HTTP/2 200\n"
			"x-ratelimit-remaining-generated-tokens: 8\n"
			"x-ratelimit-reset-generated-tokens: 2m\n"
			"RateLimit-Policy: \"p\";q=9;w=9;qu=\"concurrent-requests\"\n"
			"RateLimit-Policy: \"o\";q=9;w=9;qu=tokens,\"n\";q=9;w=9;qu=\"\"\n",
			0, "200\n");
}

/* Prints @text with the units that @names, NULL-terminated, and a limiter of @rate have. */
static void assert_named(const char *text, const char *const *names, const char *rate,
			 const char *expected)
{
	struct settings settings = SETTINGS_DEFAULT;
	struct unit_names read = {.count = 0};
	struct header_report report;
	char feedback[HEADERS_TEXT], error[ERROR_TEXT];

	assert_int_equal(setting_parse(SETTING_RATE, rate, &settings, error), 0);
	for (; *names; names++)
		assert_true(headers_add_name(&read, *names));
	assert_int_equal(headers_read(text, strlen(text), 0, &report, error), 0);
	headers_name_units(&report, &read, &settings);
	headers_print(&report, NULL, feedback);
	assert_string_equal(feedback, expected);
}

static void test_units_have_the_names_of_the_limiter(void **state)
{
	static const char text[] = "HTTP/2 200\n"
				   "ratelimit-remaining-requests: 9\n"
				   "ratelimit-reset-requests: 2s\n"
				   "ratelimit-remaining-tokens: 12\n"
				   "ratelimit-reset-tokens: 3s\n"
				   "ratelimit-remaining-input: 4\n"
				   "ratelimit-reset-input: 5s\n";
	static const char *const none[] = {NULL}, *const tokens[] = {"tokens=tpm", NULL};
	static const char *const all[] = {"requests=rpm", "tokens=tpm", "input=tpm", NULL};
	static const char *const wrong[] = {
		"tokens", "=tpm", "tokens=", "tokens=limit", "to-kens=a", "tokens=tpm=x"};
	struct unit_names names = {.count = 0};
	char name[] = "a=u";

	(void)state;
	assert_named(text, none, "60/min", "200 remaining=9 reset=2s\n");
	assert_named(text, none, "60/min tokens=9/s",
		     "200 remaining=9 reset=2s\nquota unit=tokens remaining=12 reset=3s\n");
	assert_named(text, tokens, "60/min tpm=9/s",
		     "200 remaining=9 reset=2s\nquota unit=tpm remaining=12 reset=3s\n");
	assert_named(text, all, "rpm=60/min tpm=9/s",
		     "200 unit=rpm remaining=9 reset=2s\n"
		     "quota unit=tpm remaining=12 reset=3s\n"
		     "quota unit=tpm remaining=4 reset=5s\n");
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_false(headers_add_name(&names, wrong[i]));
	for (; names.count < AMOUNTS_MAX; name[0]++)
		assert_true(headers_add_name(&names, name));
	assert_false(headers_add_name(&names, name));
	names.count = 1;
	assert_false(headers_add_name(&names, "a=v"));
}

static void test_several_windows_are_several_lines(void **state)
{
	(void)state;
	assert_feedback("by name",
			"HTTP/1.1 200\n"
			"X-HubSpot-RateLimit-Daily: 250000\n"
			"X-HubSpot-RateLimit-Daily-Remaining: 249000\n"
			"X-HubSpot-RateLimit-Secondly: 10\n"
			"X-HubSpot-RateLimit-Secondly-Remaining: 8\n"
			"X-HubSpot-RateLimit-Max: 100\n"
			"X-HubSpot-RateLimit-Remaining: 99\n"
			"X-HubSpot-RateLimit-Interval-Milliseconds: 10000\n",
			0,
			"200 remaining=8 reset=1s limit=10 window=1s\n"
			"quota remaining=99 reset=10s limit=100 window=10s\n");
	assert_feedback("by name",
			"HTTP/1.1 200\n"
			"X-RateLimit-Limit-Minute: 20\nX-RateLimit-Remaining-Minute: 3\n"
			"X-RateLimit-Limit-Hour: 500\nX-RateLimit-Remaining-Hour: 0\n",
			0, "200 remaining=3 reset=1min limit=20 window=1min\n");
	assert_feedback("policy of the limit",
			"HTTP/1.1 200\n"
			"RateLimit-Limit: 100, 100;w=10\n"
			"RateLimit-Remaining: 5\nRateLimit-Reset: 4\n",
			0, "200 remaining=5 reset=4s limit=100 window=10s\n");
}

static void test_the_last_final_response_counts(void **state)
{
	(void)state;
	assert_feedback("redirected",
			"HTTP/1.1 100 Continue\r\n\r\n"
			"HTTP/1.1 302 Found\r\nX-RateLimit-Remaining: 1\r\nX-RateLimit-Reset: 5\r\n"
			"Retry-After: 9\r\n\r\n"
			"HTTP/2 429 \r\nx-ratelimit-remaining: 0\r\nX-RATELIMIT-RESET:7\t\r\n\r\n",
			0, "429 remaining=0 reset=7s\n");
	assert_feedback("interim",
			"HTTP/1.1 200 OK\nRetry-After: 3\n\nHTTP/1.1 103 Early Hints\nAge: 5\n\n",
			0, "200\n");
	assert_feedback("proxy",
			"HTTP/1.1 200 Connection established\n\nHTTP/2 503\nretry-after-ms: 250\n",
			0, "503 retry-after=250ms\n");
	assert_feedback("body", "HTTP/1.1 200 OK\n\nRetry-After: 7\nX-RateLimit-Remaining: 0\n", 0,
			"200\n");
}

static void test_dates_count_from_that_of_the_response(void **state)
{
	(void)state;
	assert_feedback("its clock is an hour behind",
			"HTTP/2 503\nDate: Mon, 23 Nov 2026 07:00:00 GMT\n"
			"Retry-After: Mon, 23 Nov 2026 07:00:30 GMT\n",
			1795424400, "503 retry-after=30s\n");
	assert_feedback("over",
			"HTTP/2 200\nDate: Mon, 23 Nov 2026 07:00:00 GMT\n"
			"x-ratelimit-remaining: 0\nx-ratelimit-reset: 2026-11-23T06:59:00Z\n",
			1795424400, "200\n");
	assert_feedback("without a date",
			"HTTP/2 200\nx-ratelimit-remaining: 0\n"
			"x-ratelimit-reset: 2026-11-23T09:00:30+00:00\n",
			1795424400, "200 remaining=0 reset=30s\n");
}

static void test_a_status_403_that_says_when_to_come_again_is_throttled(void **state)
{
	(void)state;
	assert_feedback("when", "HTTP/2 403\nretry-after: 60\n", 0, "throttled retry-after=1min\n");
	assert_feedback("forbidden", "HTTP/2 403\nx-ratelimit-remaining: 4\nx-ratelimit-reset: 9\n",
			0, "403 remaining=4 reset=9s\n");
	assert_feedback("not found", "HTTP/2 404\nretry-after: 60\n", 0, "404\n");
}

static void test_a_response_from_a_cache_says_nothing_of_a_quota(void **state)
{
	(void)state;
	assert_feedback("old",
			"HTTP/2 200\nAge: 5\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 9\n", 0,
			"200\n");
	assert_feedback("new",
			"HTTP/2 200\nAge: 0\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 9\n", 0,
			"200 remaining=0 reset=9s\n");
}

static void test_fields_of_another_kind_are_left_out(void **state)
{
	static const char *const fields[] = {
		"x-ratelimit-remaining: many\nx-ratelimit-reset: 5",
		"x-ratelimit-remaining: -1\nx-ratelimit-reset: 5",
		"x-ratelimit-remaining: 99999999999999999999\nx-ratelimit-reset: 5",
		"x-ratelimit-remaining: 3\nx-ratelimit-reset: soon",
		"x-ratelimit-remaining: 3",
		"x-ratelimit-limit: 100\nx-ratelimit-used: 5",
		"x-ratelimit-used-minute: 3",
		"x-ms-ratelimit-remaining-subscription-reads: 11999",
		"x-ratelimit-remaining-hour: 5\nx-ratelimit-limit-hour: 6",
		"ratelimit: ;;;=\"\",\nratelimit-policy: \"a",
		"xratelimit-remaining: 0\nxratelimit-reset: 5",
		"x-ratelimiter-remaining: 0\nx-ratelimiter-reset: 5",
		": 5\nx-ratelimit-remaining\n x-ratelimit-remaining: 0",
		"x-shopify-shop-api-call-limit: 3/",
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < COUNT(fields); i++) {
		snprintf(text, sizeof(text), "HTTP/1.1 200 OK\n%s\n\n", fields[i]);
		assert_feedback(fields[i], text, 1795424400, "200\n");
	}
}

static void assert_refused(const char *text, size_t size, int err, const char *words)
{
	char error[ERROR_TEXT] = "";
	struct header_report report;

	assert_int_equal(headers_read(text, size, 0, &report, error), err);
	assert_non_null(strstr(error, words));
}

static void test_too_much_and_no_response_are_refused(void **state)
{
	static char text[HEADERS_BYTES_MAX + 1];
	size_t used;

	(void)state;
	assert_refused("", 0, -EINVAL, "no header fields");
	assert_refused("ok\n", 3, -EINVAL, "no header fields");
	assert_refused("HTTP/1.1 100 Continue\n\n", 23, -EINVAL, "no header fields");
	assert_refused("HTTP/1.1 20 OK\n", 15, -EINVAL, "no header fields");
	memset(text, 'x', sizeof(text));
	assert_refused(text, sizeof(text), -E2BIG, "more than 65536 bytes");
	used = (size_t)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\n");
	for (int i = 0; i <= HEADERS_LINES_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "a: %d\n", i);
	assert_refused(text, used, -E2BIG, "more than 256 lines");
}

static void assert_wait(const char *text, uint64_t wait_ns)
{
	static const uint64_t now_ns = UINT64_C(1795424400) * SEC; /* 2026-11-23 09:00 */
	uint64_t got_ns;

	if (!header_value_wait(text, now_ns, &got_ns))
		fail_msg("'%s' is not understood", text);
	if (got_ns != wait_ns)
		fail_msg("'%s' is %llu ns", text, (unsigned long long)got_ns);
}

static void test_a_reset_comes_in_many_forms(void **state)
{
	static const char *const wrong[] = {
		"",
		"s",
		"5x",
		"1h2",
		"-5",
		"1e9",
		"5 s",
		"2026-11-23",
		".5",
		"11y",
		"Mon, 23",
		"88888888888888888",
		"2026-13-23T09:00:30Z",
		"Mon, 31 Feb 2026 09:00:30 GMT",
		"2026-11-23T25:00:30Z",
		"3651d",
	};
	uint64_t got_ns;

	(void)state;
	assert_wait("0", 0);
	assert_wait("30", 30 * SEC);
	assert_wait("0.25", SEC / 4);
	assert_wait("315360000", 315360000 * SEC);
	assert_wait("1795424430", 30 * SEC);
	assert_wait("1795424430.5", 30 * SEC + SEC / 2);
	assert_wait("1795424430250", 30 * SEC + SEC / 4);
	assert_wait("1795424430250000", 30 * SEC + SEC / 4);
	assert_wait("1795424300", 0);
	assert_wait("6m0s", 360 * SEC);
	assert_wait("1h2m3s", 3723 * SEC);
	assert_wait("2m59.56s", 179560 * SEC / 1000);
	assert_wait("12ms", 12 * SEC / 1000);
	assert_wait("1.5us", 1500);
	assert_wait("7d", 7 * 86400 * SEC);
	assert_wait("2026-11-23T09:00:30Z", 30 * SEC);
	assert_wait("2026-11-23T09:00:30.5Z", 30 * SEC + SEC / 2);
	assert_wait("2026-11-23T10:00:30+01:00", 30 * SEC);
	assert_wait("2026-11-23T09:01Z", 60 * SEC);
	assert_wait("Mon, 23 Nov 2026 09:00:30 GMT", 30 * SEC);
	assert_wait("Monday, 23-Nov-26 09:00:30 GMT", 30 * SEC);
	assert_wait("Mon Nov 23 09:00:30 2026", 30 * SEC);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		if (header_value_wait(wrong[i], 0, &got_ns))
			fail_msg("'%s' is %llu ns", wrong[i], (unsigned long long)got_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_examples_make_feedback),
		cmocka_unit_test(
			test_a_quota_that_fills_little_by_little_holds_until_the_next_token),
		cmocka_unit_test(test_a_quota_of_a_unit_holds_for_a_second_or_until_the_reset),
		cmocka_unit_test(test_units_have_the_names_of_the_limiter),
		cmocka_unit_test(test_several_windows_are_several_lines),
		cmocka_unit_test(test_the_last_final_response_counts),
		cmocka_unit_test(test_dates_count_from_that_of_the_response),
		cmocka_unit_test(test_a_status_403_that_says_when_to_come_again_is_throttled),
		cmocka_unit_test(test_a_response_from_a_cache_says_nothing_of_a_quota),
		cmocka_unit_test(test_fields_of_another_kind_are_left_out),
		cmocka_unit_test(test_too_much_and_no_response_are_refused),
		cmocka_unit_test(test_a_reset_comes_in_many_forms),
	};

	return cmocka_run_group_tests_name("headers", tests, NULL, NULL);
}
