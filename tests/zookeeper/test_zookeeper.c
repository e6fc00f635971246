/* test_zookeeper DIRECTORY PORT [PATTERN]: cases against a server that it starts, as TAP. */
#include "check.h"
#include "server.h"
#include "fs/base/log.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CASE_LIMIT_S = 90 };

uint16_t server_port;
const char *directory;
bool failed;

static const struct test_case *const GROUPS[] = {server_cases, request_cases, connection_cases,
						 credential_cases};

const char *at(uint16_t port)
{
	static char texts[4][32];
	static int next;

	next = (next + 1) % 4;
	snprintf(texts[next], sizeof(texts[next]), "127.0.0.1:%u", port);
	return texts[next];
}

int main(int argc, char *argv[])
{
	int number = 0, failures = 0;

	if (argc < 3)
		return 2;
	directory = argv[1];
	server_port = (uint16_t)atoi(argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	log_set_level(getenv("VERBOSE") ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR);
	server_start(directory, server_port);
	for (size_t i = 0; i < sizeof(GROUPS) / sizeof(GROUPS[0]); i++) {
		for (const struct test_case *each = GROUPS[i]; each->sentence; each++) {
			if (argc > 3 && !strstr(each->sentence, argv[3]))
				continue;
			failed = false;
			alarm(CASE_LIMIT_S);
			each->run();
			failures += failed;
			printf("%sok %d - %s\n", failed ? "not " : "", ++number, each->sentence);
		}
	}
	printf("1..%d\n", number);
	server_kill();
	return failures != 0;
}
