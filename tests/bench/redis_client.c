/*
 * redis_client - the peer: a token bucket as a Lua script in Redis, over a unix socket.
 *
 *	redis_client SOCKET held COUNT			one client; latency
 *	redis_client SOCKET clients CLIENTS SECONDS	that many clients; tokens a second
 *	redis_client SOCKET pipeline DEPTH SECONDS	a client with DEPTH requests under way
 *	redis_client SOCKET script			prints the digest of the script, now loaded
 *
 * The limiter limits: the script computes with a rate that is never reached, and a burst.
 */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

enum { WARM_UP = 300, CLIENTS_MAX = 256, DIGEST_SIZE = 41 };

/* The same as RATE of bench.py. */
#define RATE_AND_BURST "10000000 10000"

/*
 * GCRA: a token is granted unless the theoretical arrival time, of the tokens so far, is more than
 * the burst ahead of the server's clock. Microseconds, from a day on that keeps doubles exact.
 */
static const char script[] =
	"local interval = 1000000 / tonumber(ARGV[1])\n"
	"local ahead = interval * tonumber(ARGV[2])\n"
	"local time = redis.call('TIME')\n"
	"local now = (tonumber(time[1]) - 1700000000) * 1000000 + tonumber(time[2])\n"
	"local arrival = math.max(tonumber(redis.call('GET', KEYS[1])) or now, now) + interval\n"
	"if arrival - now > ahead then\n"
	"\treturn 0\n"
	"end\n"
	"redis.call('SET', KEYS[1], string.format('%.3f', arrival))\n"
	"return 1\n";

static const char *socket_path;
static char digest[DIGEST_SIZE];

static _Noreturn void client_fail(const char *what)
{
	fprintf(stderr, "redis_client: %s\n", what);
	exit(EXIT_FAILURE);
}

static redisContext *connect_redis(void)
{
	redisContext *redis = redisConnectUnix(socket_path);

	if (!redis || redis->err)
		client_fail(redis ? redis->errstr : "no memory");
	return redis;
}

static void load_script(redisContext *redis)
{
	redisReply *reply = redisCommand(redis, "SCRIPT LOAD %s", script);

	if (!reply || reply->type != REDIS_REPLY_STRING)
		client_fail(reply ? reply->str : redis->errstr);
	snprintf(digest, sizeof(digest), "%s", reply->str);
	freeReplyObject(reply);
}

static void send_take(redisContext *redis)
{
	if (redisAppendCommand(redis, "EVALSHA %s 1 bench " RATE_AND_BURST, digest) != REDIS_OK)
		client_fail(redis->errstr);
}

static void receive_take(redisContext *redis)
{
	redisReply *reply;

	if (redisGetReply(redis, (void **)&reply) != REDIS_OK)
		client_fail(redis->errstr);
	if (reply->type != REDIS_REPLY_INTEGER || reply->integer != 1)
		client_fail(reply->str ? reply->str : "no token");
	freeReplyObject(reply);
}

static void held(redisContext *redis, long count)
{
	struct sample sample = sample_make(count);

	for (long i = -WARM_UP; i < count; i++) {
		int64_t start_ns = sample_now_ns();

		send_take(redis);
		receive_take(redis);
		if (i >= 0)
			sample_add(&sample, sample_now_ns() - start_ns);
	}
	sample_print(&sample, "");
}

static long take_until(redisContext *redis, long depth, int64_t end_ns)
{
	long tokens = 0;

	while (sample_now_ns() < end_ns) {
		for (long i = 0; i < depth; i++)
			send_take(redis);
		for (long i = 0; i < depth; i++)
			receive_take(redis);
		tokens += depth;
	}
	return tokens;
}

struct client {
	pthread_t thread;
	int64_t end_ns;
	long tokens;
};

static void *run_client(void *argument)
{
	struct client *client = argument;
	redisContext *redis = connect_redis();

	client->tokens = take_until(redis, 1, client->end_ns);
	redisFree(redis);
	return NULL;
}

static long clients(long count, int64_t end_ns)
{
	static struct client all[CLIENTS_MAX];
	long tokens = 0;

	if (count > CLIENTS_MAX)
		client_fail("too many clients");
	for (long i = 0; i < count; i++) {
		all[i].end_ns = end_ns;
		if (pthread_create(&all[i].thread, NULL, run_client, &all[i]))
			client_fail("pthread_create");
	}
	for (long i = 0; i < count; i++) {
		pthread_join(all[i].thread, NULL);
		tokens += all[i].tokens;
	}
	return tokens;
}

int main(int argc, char **argv)
{
	const char *command = argc > 2 ? argv[2] : "";
	long count = argc > 3 ? atol(argv[3]) : 0;
	double seconds = argc > 4 ? atof(argv[4]) : 0;
	int64_t end_ns = sample_now_ns() + (int64_t)(seconds * NS_PER_S);
	redisContext *redis;
	int status = EXIT_SUCCESS;

	if (argc < 3) {
		fprintf(stderr, "usage: redis_client SOCKET held COUNT | clients CLIENTS SECONDS | "
				"pipeline DEPTH SECONDS | script\n");
		return 2;
	}
	socket_path = argv[1];
	redis = connect_redis();
	load_script(redis);
	if (strcmp(command, "script") == 0)
		printf("digest %s\n", digest);
	else if (strcmp(command, "held") == 0)
		held(redis, count);
	else if (strcmp(command, "clients") == 0)
		printf("tokens_per_s %.1f\n", (double)clients(count, end_ns) / seconds);
	else if (strcmp(command, "pipeline") == 0)
		printf("tokens_per_s %.1f\n", (double)take_until(redis, count, end_ns) / seconds);
	else
		status = 2;
	redisFree(redis);
	return status;
}
