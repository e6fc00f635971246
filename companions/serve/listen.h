/*
 * listen - the addresses at which connections are taken.
 */
#ifndef RATEFS_COMPANIONS_SERVE_LISTEN_H
#define RATEFS_COMPANIONS_SERVE_LISTEN_H

/*
 * Listens at @address: a path, of a unix socket; or HOST:PORT, with a number or `localhost` for
 * HOST, and IPv6 in brackets. A unix socket that nothing listens at any more is replaced. Returns
 * the socket, or -1 after a message.
 */
int listen_open(const char *address);

/* Removes the file of a unix socket. */
void listen_forget(const char *address);

#endif
