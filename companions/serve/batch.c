/* batch - requests that take tokens together, see batch.h. */
#include "companions/serve/batch.h"

#include "companions/companion.h"
#include "companions/serve/worker.h"
#include "core/base/siphash.h"

#include <errno.h>
#include <string.h>

static struct batch *place_of(const struct request *request)
{
	struct worker *worker = request->connection->worker;
	uint64_t hash = siphash(request->rest, strlen(request->rest), worker->files.seed);

	return &worker->batches.all[hash % BATCHES_MAX];
}

static void add_request(struct batch *batch, struct request *request)
{
	struct batches *batches = &request->connection->worker->batches;

	batches->used |= UINT64_C(1) << (batch - batches->all);
	batch->count++;
	list_append(&batch->requests, &request->batch_link);
	request->batch = batch;
	request->stage = STAGE_TOGETHER;
}

static void remove_request(struct request *request)
{
	struct batch *batch = request->batch;

	list_remove(&batch->requests, &request->batch_link);
	batch->count--;
	request->batch = NULL;
}

/* Reads the tokens of one batch. */
static void read_batch(struct batch *batch, struct held_files *files)
{
	struct request *request = list_first(&batch->requests, struct request, batch_link);
	char error[ERROR_TEXT];
	struct held *held;
	struct url url;
	uint64_t tokens = 0;
	int err = -EINVAL;

	if (request && !url_parse(request->rest, &url, error)) {
		url.most = batch->count;
		err = held_take(files, &url, companion_now_ns(), &tokens, &held);
	}
	while ((request = list_first(&batch->requests, struct request, batch_link))) {
		remove_request(request);
		request->granted = tokens ? 1 : 0;
		request->outcome = err;
		request->stage = tokens || err ? STAGE_DECIDED : STAGE_ALONE;
		tokens -= request->granted;
		err = 0; /* that was the first one's */
	}
}

bool batch_join(struct request *request)
{
	struct worker *worker = request->connection->worker;
	struct batch *batch = place_of(request);
	const struct request *first = list_first(&batch->requests, struct request, batch_link);

	if (!first || strcmp(first->rest, request->rest) != 0)
		return false;
	if (batch->count == BATCH_REQUESTS_MAX)
		read_batch(batch, &worker->files);
	add_request(batch, request);
	return true;
}

bool batch_begin(struct request *request)
{
	struct batch *batch = place_of(request);

	if (batch->count)
		return false;
	add_request(batch, request);
	return true;
}

void batch_leave(struct request *request)
{
	if (request->batch)
		remove_request(request);
}

bool batch_read_all(struct batches *batches, struct held_files *files)
{
	bool any = batches->used;

	while (batches->used) {
		read_batch(&batches->all[__builtin_ctzll(batches->used)], files);
		batches->used &= batches->used - 1;
	}
	return any;
}
