/*
 * fuzz_request - any requests that a kernel can send, one after the other, about nodes and files
 * that it was told of: each is answered once, with an error that is one, and nothing is left at the
 * end.
 */
#include "fuzz.h"
#include "server.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct server server;

	FUZZ_CHECK(server_start(&server, server_memory(), 0, NULL, 0));
	server_play(&server, input, size, SERVER_REQUESTS_MAX);
	server_stop(&server);
	return 0;
}
