/*
 * redis_client - the peer: a token bucket as a Lua script in Redis, over a unix socket.
 *
 *	redis_client SOCKET held COUNT			one client; latency
 *	redis_client SOCKET clients CLIENTS SECONDS	that many clients; tokens a second
 *	redis_client SOCKET pipeline DEPTH SECONDS	one client that keeps DEPTH requests under way
 *	redis_client SOCKET script			prints the digest of the script, now loaded
 *
 * The bucket never runs dry: what is timed is the way there and back, as with rate max.
 */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

enum { WARM_UP = 300, CLIENTS_MAX = 256, DIGEST_SIZE = 41 };

/* Refills by the server's clock, takes one token if there is one. */
static const char script[] =
	"local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])\n"
	"local time = redis.call('TIME')\n"
	"local now = tonumber(time[1]) + tonumber(time[2]) / 1000000\n"
	"local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')\n"
	"local at = tonumber(bucket[2]) or now\n"
	"local tokens = math.min(burst, (tonumber(bucket[1]) or burst) + (now - at) * rate)\n"
	"local granted = 0\n"
	"if tokens >= 1 then\n"
	"\ttokens = tokens - 1\n"
	"\tgranted = 1\n"
	"end\n"
	"redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)\n"
	"return granted\n";

static const char *socket_path;
static char digest[DIGEST_SIZE];

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "redis_client: %s\n", what);
	exit(EXIT_FAILURE);
}

static redisContext *connect_redis(void)
{
	redisContext *redis = redisConnectUnix(socket_path);

	if (!redis || redis->err)
		fail(redis ? redis->errstr : "no memory");
	return redis;
}

static void load_script(redisContext *redis)
{
	redisReply *reply = redisCommand(redis, "SCRIPT LOAD %s", script);

	if (!reply || reply->type != REDIS_REPLY_STRING)
		fail(reply ? reply->str : redis->errstr);
	snprintf(digest, sizeof(digest), "%s", reply->str);
	freeReplyObject(reply);
}

static void send_take(redisContext *redis)
{
	if (redisAppendCommand(redis, "EVALSHA %s 1 bench 1000000000 1000000000", digest) !=
	    REDIS_OK)
		fail(redis->errstr);
}

static void receive_take(redisContext *redis)
{
	redisReply *reply;

	if (redisGetReply(redis, (void **)&reply) != REDIS_OK)
		fail(redis->errstr);
	if (reply->type != REDIS_REPLY_INTEGER || reply->integer != 1)
		fail(reply->str ? reply->str : "no token");
	freeReplyObject(reply);
}

static void held(redisContext *redis, long count)
{
	struct sample sample = sample_make(count);

	for (long i = -WARM_UP; i < count; i++) {
		int64_t start_ns = now_ns();

		send_take(redis);
		receive_take(redis);
		if (i >= 0)
			sample_add(&sample, now_ns() - start_ns);
	}
	sample_print(&sample, "");
}

static long take_until(redisContext *redis, long depth, int64_t end_ns)
{
	long tokens = 0;

	while (now_ns() < end_ns) {
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
		fail("too many clients");
	for (long i = 0; i < count; i++) {
		all[i].end_ns = end_ns;
		if (pthread_create(&all[i].thread, NULL, run_client, &all[i]))
			fail("pthread_create");
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
	int64_t end_ns = now_ns() + (int64_t)(seconds * NS_PER_S);
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
