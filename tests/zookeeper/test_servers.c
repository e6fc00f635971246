/* test_servers - where the servers are. */
#include "check.h"
#include "fs/base/addresses.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void test_addresses(void)
{
	static const struct {
		const char *text;
		const char *addresses[4];
	} accepted[] = {
		{"127.0.0.1", {"127.0.0.1:2181"}},
		{"127.0.0.1:65535", {"127.0.0.1:65535"}},
		{"[::1]", {"::1:2181"}},
		{"[::1]:1", {"::1:1"}},
		{"127.0.0.1:1,name-of-some-server,[2001:db8::7]:3,127.0.0.1:2",
		 {"127.0.0.1:1", "2001:db8::7:3", "127.0.0.1:2"}},
	};
	char address[SERVER_ADDRESS_TEXT], error[ERROR_TEXT];

	for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
		struct addresses *servers = addresses_new(accepted[i].text, error);
		uint32_t count = 0;

		while (accepted[i].addresses[count])
			count++;
		for (uint32_t turn = 0; turn < 2 * count; turn++) {
			CHECK(addresses_address(servers, turn, address));
			CHECK(!strcmp(address, accepted[i].addresses[turn % count]));
		}
		addresses_free(servers);
	}
}

static void test_refusals(void)
{
	static const struct {
		const char *text, *why;
	} refused[] = {
		{"", "missing"},	  {"a,,b", "missing"},
		{"a,", "missing"},	  {":2181", "name"},
		{"a:", "port"},		  {"a:0", "port"},
		{"a:65536", "port"},	  {"a:-1", "port"},
		{"a: 1", "port"},	  {"a:1x", "port"},
		{"[::1]x", "port"},	  {"::1", "brackets"},
		{"::1:2181", "brackets"}, {"[::1", "bracket"},
		{"[name]", "IPv6"},	  {"[]", "IPv6"},
		{"a b", "name"},	  {"a/b", "name"},
		{"1.2.3.400", "name"},	  {"a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", "16"},
	};
	char error[ERROR_TEXT];

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		CHECK(!addresses_new(refused[i].text, error));
		CHECK(strstr(error, refused[i].why));
	}
}

static void test_look_up(void)
{
	char address[SERVER_ADDRESS_TEXT], error[ERROR_TEXT];
	struct addresses *servers = addresses_new("no-such-server.invalid:7,localhost:8", error);
	struct pollfd wake = {.fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN};

	CHECK(!addresses_address(servers, 0, address));
	addresses_look_up(servers, wake.fd);
	CHECK_IS(poll(&wake, 1, 10000), 1);
	CHECK(addresses_address(servers, 0, address));
	CHECK(!strcmp(address, "127.0.0.1:8") || !strcmp(address, "::1:8"));
	addresses_look_up(servers, wake.fd);
	addresses_free(servers); /* a look-up goes on without it */
	close(wake.fd);
}

const struct test_case server_cases[] = {
	{"servers are taken in turn, names once they are known", test_addresses},
	{"what is no list of servers is refused with the reason", test_refusals},
	{"names are looked up meanwhile", test_look_up},
	{NULL, NULL},
};
