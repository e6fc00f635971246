/* headers - header fields as feedback, see headers.h. */
#include "companions/headers.h"
#include "companions/header_value.h"

#include "core/values/quantity.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	LINE_TEXT = 1024,
	STATUS_FINAL = 200,
	STATUS_FORBIDDEN = 403,
	STATUS_TOO_MANY = 429,
	STATUS_UNAVAILABLE = 503,
	LINE_MOST = 192, /* of what is printed, without the outcome */
};

/* A block as far as it was read. */
struct block {
	unsigned int status; /* 0: none */
	bool is_cached;
	bool in_fields; /* the end of the block has not come yet */
	char date[QUOTA_VALUE_TEXT], retry_after[QUOTA_VALUE_TEXT];
	uint64_t retry_after_ns; /* of a field that tells it in ms */
	struct quota_fields fields;
};

/* Reads `HTTP/VERSION STATUS ...`. False: it is none. */
static bool read_status(const char *line, unsigned int *status)
{
	const char *at = line + strcspn(line, " ");

	if (strncmp(line, "HTTP/", 5) != 0 || !*at)
		return false;
	at += strspn(at, " ");
	if (!isdigit((unsigned char)at[0]) || !isdigit((unsigned char)at[1]) ||
	    !isdigit((unsigned char)at[2]) || isdigit((unsigned char)at[3]))
		return false;
	*status = (unsigned int)((at[0] - '0') * 100 + (at[1] - '0') * 10 + (at[2] - '0'));
	return true;
}

/* Tells when to try again. */
static bool is_retry_after(const char *name)
{
	return !strcmp(name, "retry-after") || !strcmp(name, "x-retry-after") ||
	       !strcmp(name, "x-ratelimit-retry-after");
}

static void read_field(struct block *block, char *line)
{
	char *value = strchr(line, ':'), *end;
	uint64_t number;

	if (!value || value == line)
		return;
	*value++ = '\0';
	value += strspn(value, " \t");
	for (end = value + strlen(value); end > value && strchr(" \t", end[-1]);)
		*--end = '\0';
	for (char *at = line; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	if (!strcmp(line, "date"))
		snprintf(block->date, sizeof(block->date), "%s", value);
	else if (is_retry_after(line))
		snprintf(block->retry_after, sizeof(block->retry_after), "%s", value);
	else if (!strcmp(line, "retry-after-ms") || !strcmp(line, "x-ms-retry-after-ms")) {
		if (header_value_count(value, &number) &&
		    number <= DURATION_MAX_NS / (NSEC_PER_SEC / 1000))
			block->retry_after_ns = number * (NSEC_PER_SEC / 1000);
	} else if (!strcmp(line, "age"))
		block->is_cached = header_value_count(value, &number) && number;
	else
		header_quota_add(&block->fields, line, value);
}

static void read_line(struct block *block, char *line)
{
	unsigned int status;

	line[strcspn(line, "\r")] = '\0';
	if (block->in_fields) {
		block->in_fields = *line;
		/* A line that goes on with the one before it says nothing that is known. */
		if (*line && *line != ' ' && *line != '\t')
			read_field(block, line);
		return;
	}
	if (!read_status(line, &status))
		return;
	/* The fields of an interim response say nothing of this one. */
	if (status < STATUS_FINAL)
		return;
	*block = (struct block){.status = status, .in_fields = true};
}

/* Tells whether nothing is left in one of the quotas. */
static bool is_used_up(const struct header_report *report)
{
	for (uint32_t i = 0; i < report->quota_count; i++) {
		if (report->quotas[i].has_remaining && !report->quotas[i].remaining)
			return true;
	}
	return false;
}

static void make_report(const struct block *block, uint64_t now_ns, struct header_report *report)
{
	*report = (struct header_report){.status = block->status};
	(void)header_value_date(block->date, &now_ns);
	report->retry_after_ns = block->retry_after_ns;
	if (!report->retry_after_ns && *block->retry_after &&
	    !header_value_wait(block->retry_after, now_ns, &report->retry_after_ns))
		report->retry_after_ns = 0;
	if (!block->is_cached)
		report->quota_count = header_quota_list(&block->fields, now_ns, report->quotas);
	report->is_throttled = block->status == STATUS_TOO_MANY ||
			       block->status == STATUS_UNAVAILABLE ||
			       (block->status == STATUS_FORBIDDEN &&
				(report->retry_after_ns || is_used_up(report)));
}

int headers_read(const char *text, size_t size, uint64_t now_ns, struct header_report *report,
		 char error[ERROR_TEXT])
{
	struct block block = {.status = 0};
	const char *end = text + size;
	unsigned int lines = 0;
	char line[LINE_TEXT];

	if (size > HEADERS_BYTES_MAX) {
		snprintf(error, ERROR_TEXT, "more than %d bytes", HEADERS_BYTES_MAX);
		return -E2BIG;
	}
	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);

		/* A longer line, or one with a NUL, is read up to there. */
		snprintf(line, sizeof(line), "%.*s", (int)length, text);
		lines = block.in_fields ? lines + 1 : 1;
		if (lines > HEADERS_LINES_MAX) {
			snprintf(error, ERROR_TEXT, "more than %d lines", HEADERS_LINES_MAX);
			return -E2BIG;
		}
		read_line(&block, line);
		text += length + (stop != NULL);
	}
	if (!block.status) {
		snprintf(error, ERROR_TEXT, "no header fields of a response, with HTTP/... STATUS");
		return -EINVAL;
	}
	make_report(&block, now_ns, report);
	return 0;
}

bool headers_add_name(struct unit_names *names, const char *text)
{
	struct unit_name *name = &names->of[names->count];
	size_t length = strcspn(text, "=");
	const char *unit = text + length + (text[length] == '=');

	if (names->count == AMOUNTS_MAX || !text[length] ||
	    !amount_read_unit(text, length, name->header) ||
	    !amount_read_unit(unit, strlen(unit), name->limiter))
		return false;
	for (uint32_t i = 0; i < names->count; i++) {
		if (amount_is_of(names->of[i].header, name->header))
			return false;
	}
	names->count++;
	return true;
}

/* Returns the name that @names have for the unit of @quota; NULL: none. */
static const struct unit_name *find_name(const struct unit_names *names,
					 const struct header_quota *quota)
{
	static const char requests[UNIT_TEXT] = "requests";

	for (uint32_t i = 0; i < names->count; i++) {
		if (amount_is_of(names->of[i].header, *quota->unit ? quota->unit : requests))
			return &names->of[i];
	}
	return NULL;
}

bool headers_have_units(const struct header_report *report, const struct unit_names *names)
{
	for (uint32_t i = 0; i < report->quota_count; i++) {
		if (*report->quotas[i].unit && !find_name(names, &report->quotas[i]))
			return true;
	}
	return false;
}

void headers_name_units(struct header_report *report, const struct unit_names *names,
			const struct settings *settings)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < report->quota_count; i++) {
		struct header_quota quota = report->quotas[i];
		const struct unit_name *name = find_name(names, &quota);

		if (name)
			memcpy(quota.unit, name->limiter, UNIT_TEXT);
		if (name || !*quota.unit || settings_have_unit(settings, quota.unit))
			report->quotas[kept++] = quota;
	}
	report->quota_count = kept;
}

/* Adds ` NAME=DURATION`. */
static size_t print_duration(char *text, size_t room, const char *name, uint64_t ns)
{
	char duration[QUANTITY_TEXT];

	duration_print(ns, duration);
	return (size_t)snprintf(text, room, " %s=%s", name, duration);
}

static size_t print_quota(const struct header_quota *quota, char *text, size_t room)
{
	size_t used = 0;

	if (*quota->unit)
		used += (size_t)snprintf(text, room, " unit=%s", quota->unit);
	if (quota->has_remaining) {
		used += (size_t)snprintf(text + used, room - used, " remaining=%llu",
					 (unsigned long long)quota->remaining);
		used += print_duration(text + used, room - used, "reset", quota->reset_ns);
	}
	if (quota->has_limit) {
		used += (size_t)snprintf(text + used, room - used, " limit=%llu",
					 (unsigned long long)quota->limit);
		used += print_duration(text + used, room - used, "window", quota->window_ns);
	}
	return used;
}

size_t headers_print(const struct header_report *report, const char *outcome,
		     char text[HEADERS_TEXT])
{
	size_t used;

	if (outcome)
		used = (size_t)snprintf(text, HEADERS_TEXT - LINE_MOST, "%s", outcome);
	else if (report->is_throttled && report->status == STATUS_FORBIDDEN)
		used = (size_t)snprintf(text, HEADERS_TEXT, "throttled");
	else
		used = (size_t)snprintf(text, HEADERS_TEXT, "%03u", report->status);
	if (report->is_throttled && report->retry_after_ns)
		used += print_duration(text + used, HEADERS_TEXT - used, "retry-after",
				       report->retry_after_ns);
	for (uint32_t i = 0; i < report->quota_count && used < HEADERS_TEXT - LINE_MOST; i++) {
		if (i)
			used += (size_t)snprintf(text + used, HEADERS_TEXT - used, "\nquota");
		used += print_quota(&report->quotas[i], text + used, HEADERS_TEXT - used);
	}
	return used + (size_t)snprintf(text + used, HEADERS_TEXT - used, "\n");
}
