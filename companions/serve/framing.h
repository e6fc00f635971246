/*
 * framing - whether all who read a request agree on where it ends.
 *
 * A proxy that sends requests of several clients on one connection, and reads the length of a
 * request differently from us, lets a client put a request of its own among those of others
 * (RFC 9112, 11.2). libmicrohttpd takes the first of two lengths, so such requests are refused here
 * before their body, which closes the connection.
 */
#ifndef RATEFS_COMPANIONS_SERVE_FRAMING_H
#define RATEFS_COMPANIONS_SERVE_FRAMING_H

#include <microhttpd.h>

/* Returns why the header fields of a request of HTTP @version are refused, in a sentence, or NULL.
 */
const char *framing_refusal(struct MHD_Connection *mhd, const char *version);

#endif
