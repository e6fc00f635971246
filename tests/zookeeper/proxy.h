/* proxy - a TCP connection between client and server that can be disturbed. */
#ifndef RATEFS_TESTS_PROXY_H
#define RATEFS_TESTS_PROXY_H

#include <stdint.h>

enum proxy_mode {
	PROXY_FLOW,
	PROXY_HOLD_ANSWERS, /* requests get through, answers do not */
	PROXY_GREET,  /* of answers the first of each connection gets through: the handshake's */
	PROXY_STALL,  /* nothing gets through, new connections are accepted */
	PROXY_REFUSE, /* as stall, and new connections are closed at once */
};

struct proxy;

struct proxy *proxy_start(uint16_t server_port);
void proxy_stop(struct proxy *proxy);
uint16_t proxy_port(const struct proxy *proxy);
void proxy_set(struct proxy *proxy, enum proxy_mode mode);

/* Ends all connections, with a reset; returns when they are gone. Held bytes are lost. */
void proxy_cut(struct proxy *proxy);

/* Connections that were accepted so far. */
unsigned int proxy_count(struct proxy *proxy);

#endif
