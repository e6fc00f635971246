/* route - which function answers which request, see route.h. */
#include "companions/serve/route.h"

#include <string.h>

/* The table: one row an address. */
static const struct route ROUTES[] = {
	{"GET, HEAD", "/", 0, ASKERS_ALL, page_answer},
	{"GET, HEAD", "/v1/events/", 0, ASKERS_OWN, events_answer},
	{NULL, "/v1/take/", 0, ASKERS_PROXIES, take_answer},
	{"POST", "/v1/feedback/", HEADERS_MAX, ASKERS_OWN, tell_feedback},
	{"POST", "/v1/charge/", BODY_MAX, ASKERS_OWN, tell_charge},
};

/* Tells whether @uri is @path or, if that ends with a slash, below it. */
static bool has_path(const char *uri, const char *path)
{
	size_t length = strlen(path);

	if (strncmp(uri, path, length) != 0)
		return false;
	return (length > 1 && path[length - 1] == '/') || !uri[length] || uri[length] == '?';
}

bool route_takes(const struct route *route, const char *method)
{
	size_t length = strlen(method);
	const char *found = route->allow ? strstr(route->allow, method) : NULL;

	if (!route->allow)
		return true;
	return found && length && (found == route->allow || found[-1] == ' ') &&
	       (!found[length] || found[length] == ',');
}

const struct route *route_find(const char *uri, const char **rest)
{
	for (size_t i = 0; i < sizeof(ROUTES) / sizeof(ROUTES[0]); i++) {
		if (!has_path(uri, ROUTES[i].path))
			continue;
		*rest = uri + strlen(ROUTES[i].path);
		return &ROUTES[i];
	}
	return NULL;
}
