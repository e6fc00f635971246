/* server - see server.h. */
#include "server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

enum { TRIES = 600, TRY_US = 50000 };

static pid_t server = -1;

static void run_server(const char *configuration, const char *log)
{
	int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execlp("java", "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp",
	       "/etc/zookeeper/conf:/usr/share/java/zookeeper.jar",
	       "-Dzookeeper.admin.enableServer=false",
	       "org.apache.zookeeper.server.quorum.QuorumPeerMain", configuration, (char *)NULL);
	_exit(127);
}

static bool answers(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[8] = "";
	bool answered;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	answered = !connect(descriptor, (struct sockaddr *)&at, sizeof(at)) &&
		   send(descriptor, "srvr", 4, MSG_NOSIGNAL) == 4 &&
		   recv(descriptor, text, sizeof(text) - 1, MSG_WAITALL) > 0 &&
		   !strncmp(text, "Zoo", 3);
	close(descriptor);
	return answered;
}

void server_start(const char *directory, uint16_t port)
{
	char configuration[512], log[512];
	FILE *file;

	snprintf(configuration, sizeof(configuration), "%s/server.cfg", directory);
	snprintf(log, sizeof(log), "%s/server.log", directory);
	file = fopen(configuration, "we");
	assert(file);
	fprintf(file,
		"tickTime=200\ndataDir=%s/data\nclientPort=%u\nclientPortAddress=127.0.0.1\n"
		"maxClientCnxns=0\n",
		directory, port);
	fclose(file);
	server = fork();
	if (!server)
		run_server(configuration, log);
	for (int i = 0; i < TRIES; i++) {
		if (answers(port))
			return;
		usleep(TRY_US);
	}
	printf("Bail out! the server does not start\n");
	server_kill();
	exit(1);
}

void server_kill(void)
{
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	server = -1;
}

static void on_put(int code, const char *path, const void *done)
{
	(void)path;
	assert(code == ZOK);
	*(bool *)done = true;
}

static void turn(zhandle_t *zhandle)
{
	struct timeval wait;
	int descriptor = -1, interest = 0;
	struct pollfd polled;

	zookeeper_interest(zhandle, &descriptor, &interest, &wait);
	polled = (struct pollfd){.fd = descriptor,
				 .events = interest & ZOOKEEPER_WRITE ? POLLIN | POLLOUT : POLLIN};
	if (poll(&polled, 1, 10) > 0)
		zookeeper_process(zhandle,
				  (polled.revents & POLLIN ? ZOOKEEPER_READ : 0) |
					  (polled.revents & POLLOUT ? ZOOKEEPER_WRITE : 0));
}

void server_put(uint16_t port, const char *path, const char *data, size_t length)
{
	char at[32];
	zhandle_t *zhandle;
	bool done = false;

	snprintf(at, sizeof(at), "127.0.0.1:%u", port);
	zhandle = zookeeper_init(at, NULL, 4000, NULL, NULL, 0);
	assert(zhandle);
	while (zoo_state(zhandle) != ZOO_CONNECTED_STATE)
		turn(zhandle);
	zoo_acreate(zhandle, path, data, (int)length, &ZOO_OPEN_ACL_UNSAFE, 0, on_put, &done);
	while (!done)
		turn(zhandle);
	zookeeper_close(zhandle);
}
