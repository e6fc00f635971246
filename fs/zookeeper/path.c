/* path - makes the nodes of the path below which all others are, see call.h. */
#include "fs/zookeeper/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void prepared(struct call *call, int code)
{
	if (!call->given_up)
		call->calls->prepared(call->calls, code);
}

static void on_made(int code, const char *made, const void *context)
{
	struct call *call = (struct call *)context;

	(void)made;
	if (code == ZNODEEXISTS)
		code = ZOK;
	if (code == ZNONODE && call->calls->refused != ZOK) /* it is why */
		code = call->calls->refused;
	call->calls->refused = code;
	if (call->is_last)
		prepared(call, code);
	call_drop(call);
}

/* Makes every node from the root to the path, in one go: what is there already is left alone. */
static int make_path(struct calls *calls)
{
	size_t size = strlen(calls->path) + 1;
	const char *end = calls->path;

	calls->refused = ZOK;
	do {
		struct call *call = call_make(calls, NULL, size);
		int code;

		if (!call)
			return ZSYSTEMERROR;
		end += 1 + strcspn(end + 1, "/");
		snprintf(call->text, size, "%.*s", (int)(end - calls->path), calls->path);
		call->is_last = !*end;
		code = zoo_acreate(calls->handle, call->text, "", 0, calls->acl, 0, on_made, call);
		if (code != ZOK)
			return code;
	} while (*end);
	return ZOK;
}

static void on_looked(int code, const struct Stat *stat, const void *context)
{
	struct call *call = (struct call *)context;

	(void)stat;
	if (code != ZNONODE || call->given_up)
		prepared(call, code);
	else if ((code = make_path(call->calls)) != ZOK)
		prepared(call, code);
	call_drop(call);
}

int calls_prepare(struct calls *calls)
{
	size_t size = strlen(calls->path) + 1;
	struct call *call;

	if (size == 1) {
		calls->prepared(calls, ZOK);
		return 0;
	}
	call = call_make(calls, NULL, size);
	if (!call)
		return -ENOMEM;
	memcpy(call->text, calls->path, size);
	return zoo_aexists(calls->handle, call->text, 0, on_looked, call) == ZOK ? 0 : -EIO;
}
