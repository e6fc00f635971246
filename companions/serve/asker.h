/*
 * asker - whether a request comes from a page of another site, through its reader's browser.
 *
 * A browser sends what any page wants to any address that its machine reaches. It names the site
 * of the page in Sec-Fetch-Site (W3C Fetch Metadata; for addresses that it trusts, such as
 * 127.0.0.1) or in Origin (RFC 6454), and a page that had its own name lead here (DNS rebinding)
 * betrays itself by Host. No browser comes by a unix socket.
 */
#ifndef RATEFS_COMPANIONS_SERVE_ASKER_H
#define RATEFS_COMPANIONS_SERVE_ASKER_H

#include "companions/serve/worker.h"

/* Of whom a route takes requests. */
enum askers {
	ASKERS_ALL,	/* of all, links of other sites among them */
	ASKERS_PROXIES, /* of proxies, which pass on what browsers sent, and of no other site */
	ASKERS_OWN,	/* of no page but our own */
};

/* Returns why @request is refused, in a sentence, or NULL. */
const char *asker_refusal(const struct request *request, enum askers askers);

#endif
