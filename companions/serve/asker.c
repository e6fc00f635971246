/* asker - whether a request comes from a page of another site, see asker.h. */
#include "companions/serve/asker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

static const char *field(const struct request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection->mhd, MHD_HEADER_KIND, name);
}

/* Returns the host that is asked, as RFC 9112, 3.2.2 has it, or NULL. */
static const char *host_of(const struct request *request)
{
	return request->host ? request->host : field(request, MHD_HTTP_HEADER_HOST);
}

/* Tells whether a page of another site has its reader's browser ask. */
static bool is_of_another_site(const struct request *request)
{
	const char *site = field(request, "Sec-Fetch-Site");
	const char *origin = field(request, MHD_HTTP_HEADER_ORIGIN);
	const char *host = host_of(request), *name;

	if (site)
		return strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
	if (!origin)
		return false;
	name = strstr(origin, "://");
	return !name || !host || strcasecmp(name + strlen("://"), host) != 0;
}

/* Tells whether a proxy asks for its client; a page cannot send these fields to another site. */
static bool is_of_proxy(const struct request *request)
{
	return field(request, "X-Forwarded-For") || field(request, "X-Real-IP") ||
	       field(request, "Forwarded");
}

/* Tells whether the request came in at a loopback address. */
static bool is_of_this_machine(const struct request *request)
{
	struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&address;
	socklen_t length = sizeof(address);

	if (getsockname(request->connection->socket, (struct sockaddr *)&address, &length))
		return false;
	if (address.ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return address.ss_family == AF_INET6 && (IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
						 (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) &&
						  six->sin6_addr.s6_addr[12] == IN_LOOPBACKNET));
}

/* Tells whether @host, a Host field, is a number or localhost: no other site has such a name. */
static bool is_number(const char *host)
{
	static const char local[] = "localhost";
	char name[INET6_ADDRSTRLEN];
	struct in_addr number;
	size_t length;

	if (*host == '[')
		return true;
	length = strcspn(host, ":");
	if (length >= sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)length, host);
	return !strcasecmp(name, local) || inet_pton(AF_INET, name, &number) == 1;
}

const char *asker_refusal(const struct request *request, enum askers askers)
{
	const char *host = host_of(request);
	bool of_another_site = askers != ASKERS_ALL && is_of_another_site(request);

	/* A page whose name leads here may set any field of a proxy, but not Host. */
	if (host && !is_number(host) && is_of_this_machine(request))
		return "ask by the number of the address, or as localhost";
	/* From elsewhere, what a proxy passes on is as good as what a browser may have sent. */
	if (askers == ASKERS_PROXIES)
		of_another_site = of_another_site && is_of_this_machine(request) &&
				  !is_of_proxy(request);
	return of_another_site ? "not from a page of another site" : NULL;
}
