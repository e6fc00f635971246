/*
 * page - `/`: the page that draws what limiters do, one file with all it needs.
 *
 * Its policy lets it run the one script and use the one style that it has, which it names by their
 * digests, and ask nothing but the address that it is from.
 */
#include "companions/serve/route.h"

#include "page_html.h" /* PAGE, PAGE_POLICY: made by embed.py of page.html */

static const struct {
	const char *name, *value;
} FIELDS[] = {
	{MHD_HTTP_HEADER_CONTENT_TYPE, "text/html; charset=utf-8"},
	{MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache"},
	{"Content-Security-Policy", PAGE_POLICY},
	{"Referrer-Policy", "no-referrer"},
	{"X-Content-Type-Options", "nosniff"},
};

enum MHD_Result page_answer(struct request *request)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		sizeof(PAGE), (void *)(uintptr_t)PAGE, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result = MHD_NO;

	for (size_t i = 0; response && i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++)
		(void)MHD_add_response_header(response, FIELDS[i].name, FIELDS[i].value);
	if (response) {
		result = MHD_queue_response(request->connection->mhd, MHD_HTTP_OK, response);
		MHD_destroy_response(response);
	}
	return result;
}
