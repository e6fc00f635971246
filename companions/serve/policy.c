/* policy - what the header fields of a refusal say of a limiter, see policy.h. */
#include "companions/serve/policy.h"

#include "companions/serve/held.h"
#include "core/values/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Writes a name as a string of RFC 9651: bytes that it cannot have, and `%`, become `%XX`. */
static void write_name(const char *path, char name[POLICY_NAME_TEXT])
{
	size_t used = 0;

	for (const char *c = path; *c && used < POLICY_NAME_TEXT - 8; c++) {
		if (*c < ' ' || *c >= 0x7f || *c == '"' || *c == '\\' || *c == '%')
			used += (size_t)sprintf(name + used, "%%%02X", (unsigned char)*c);
		else
			name[used++] = *c;
	}
	name[used] = '\0';
}

/* Finds the least of the rates in the file @path; max if it cannot be read. */
static struct rate least_rate(const struct held_files *files, const char *path)
{
	struct rate least = RATE_UNLIMITED, rate;
	char text[SETTING_TEXT], *rest = NULL;

	if (held_text(files, path, text, sizeof(text)))
		return least;
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		word[strcspn(word, ":")] = '\0';
		if (!rate_parse_limit(word, &rate) && rate_compare(&rate, &least) < 0)
			least = rate;
	}
	return least;
}

/* Appends a policy of @rate to @field: a whole number of tokens in a whole number of seconds. */
static void append_policy(const char *name, const struct rate *rate, char field[POLICY_FIELD_TEXT])
{
	size_t used = strlen(field);
	struct fraction fraction = rate_fraction(rate);
	u128 quota, window_s = (rate->period_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC;

	quota = fraction.num * window_s * NSEC_PER_SEC / fraction.den;
	if (!quota && fraction.num) {
		window_s = (fraction.den - 1) / ((u128)fraction.num * NSEC_PER_SEC) + 1;
		quota = fraction.num * window_s * NSEC_PER_SEC / fraction.den;
	}
	snprintf(field + used, POLICY_FIELD_TEXT - used, "%s\"%s\";q=%" PRIu64 ";w=%" PRIu64,
		 used ? ", " : "", name, (uint64_t)quota, (uint64_t)window_s);
}

void policy_read(const struct held_files *files, const struct url *url, struct policy *policy)
{
	struct url limiter = *url;
	char path[URL_FILE_TEXT];
	struct rate rate;

	limiter.key[0] = '\0';
	write_name(url->limiter, policy->name);
	policy->field[0] = '\0';
	url_file(&limiter, "rate", path);
	rate = least_rate(files, path);
	if (!rate_is_unlimited(&rate))
		append_policy(policy->name, &rate, policy->field);
	if (!*url->key)
		return;
	url_file(&limiter, "key_rate", path);
	rate = least_rate(files, path);
	if (rate_is_unlimited(&rate))
		return;
	strcat(policy->name, " key");
	append_policy(policy->name, &rate, policy->field);
}

void policy_limit(const struct policy *policy, uint64_t eta_ns, char field[POLICY_FIELD_TEXT])
{
	int used = snprintf(field, POLICY_FIELD_TEXT, "\"%s\";r=0", policy->name);

	if (eta_ns != NEVER_NS)
		snprintf(field + used, POLICY_FIELD_TEXT - (size_t)used, ";t=%" PRIu64,
			 (eta_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC);
}
