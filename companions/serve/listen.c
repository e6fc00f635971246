/* listen - the addresses at which connections are taken, see listen.h. */
#include "companions/serve/listen.h"

#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { KIND = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, HOST_TEXT = 64 };

/* Tells whether a server listens at the unix socket. */
static int is_in_use(const struct sockaddr_un *address)
{
	int probe = socket(AF_UNIX, KIND, 0), used;

	used = probe >= 0 && (!connect(probe, (const struct sockaddr *)address, sizeof(*address)) ||
			      (errno != ECONNREFUSED && errno != ENOENT));
	if (probe >= 0)
		close(probe);
	return used;
}

static int listen_at(int family, const struct sockaddr *address, socklen_t length, const char *text)
{
	int socket_file = socket(family, KIND, 0), on = 1;

	if (socket_file >= 0 && family != AF_UNIX)
		(void)setsockopt(socket_file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (socket_file >= 0 && !bind(socket_file, address, length) &&
	    !listen(socket_file, SOMAXCONN))
		return socket_file;
	warn("%s", text);
	if (socket_file >= 0)
		close(socket_file);
	return -1;
}

static int listen_unix(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path)) {
		warnx("%s: the path of a socket has %zu bytes at most", path,
		      sizeof(address.sun_path) - 1);
		return -1;
	}
	strcpy(address.sun_path, path);
	if (is_in_use(&address)) {
		warnx("%s: in use, or not a socket of this user", path);
		return -1;
	}
	/* One of a server that is no more; of another file, bind(2) says that it is there. */
	listen_forget(path);
	return listen_at(AF_UNIX, (const struct sockaddr *)&address, sizeof(address), path);
}

int listen_open(const char *address)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	const char *port = strrchr(address, ':');
	size_t length = port ? (size_t)(port - address) : 0;
	struct addrinfo *found = NULL;
	char host[HOST_TEXT];
	int opened = -1;

	if (*address == '/')
		return listen_unix(address);
	if (length > 2 && *address == '[' && port[-1] == ']') {
		address++;
		length -= 2;
	}
	if (length && length < sizeof(host)) {
		snprintf(host, sizeof(host), "%.*s", (int)length, address);
		if (!strcmp(host, "localhost"))
			strcpy(host, "127.0.0.1");
		if (!getaddrinfo(host, port + 1, &hints, &found) && port[1])
			opened = listen_at(found->ai_family, found->ai_addr, found->ai_addrlen,
					   address);
		else
			length = 0;
	}
	if (!length || length >= sizeof(host))
		warnx("not an address (/PATH, or NUMBER:PORT such as 127.0.0.1:7283): '%s'",
		      address);
	if (found)
		freeaddrinfo(found);
	return opened;
}

void listen_forget(const char *address)
{
	struct sockaddr_un socket_address = {.sun_family = AF_UNIX};
	struct stat status;

	if (*address != '/' || strlen(address) >= sizeof(socket_address.sun_path) ||
	    lstat(address, &status) || !S_ISSOCK(status.st_mode))
		return;
	strcpy(socket_address.sun_path, address);
	if (!is_in_use(&socket_address))
		unlink(address);
}
