/* take - requests for tokens: `/v1/take/LIMITER?…`. */
#include "companions/companion.h"
#include "companions/serve/answer.h"
#include "companions/serve/route.h"

#include <errno.h>

/* Takes the key from the header field that the URL names. 0, or -EINVAL, -ERANGE. */
static int take_key(const struct request *request, struct url *url)
{
	const char *key;

	if (!*url->key_from)
		return 0;
	key = MHD_lookup_connection_value(request->connection->mhd, MHD_HEADER_KIND, url->key_from);
	return url_key(key ? key : "", url->key);
}

/* Tells whether requests of that URL all ask for a token at once of the same limiter or key. */
static bool is_for_batch(const struct url *url)
{
	return url->most == 1 && !*url->units && !url->within_ns && !*url->key_from;
}

/* Starts to wait. As worker_wait(). */
static int wait_for_turn(struct request *request, const struct url *url)
{
	char name[NAME_BYTES_MAX], path[URL_FILE_TEXT];
	int file;

	url_take(url, true, name);
	url_file(url, name, path);
	file = held_open_take(&request->connection->worker->files, url, path, companion_now_ns());
	return file < 0 ? file : worker_wait(request, file, url->within_ns);
}

enum MHD_Result take_answer(struct request *request)
{
	struct held_files *files = &request->connection->worker->files;
	struct held *held = NULL;
	char error[ERROR_TEXT];
	uint64_t tokens = 0;
	struct url url;
	int err;

	if (request->stage == STAGE_TOGETHER ||
	    (request->stage == STAGE_BODY && (!worker_has_room(request) || batch_join(request))))
		return MHD_YES;
	if (request->granted)
		return answer_granted(request, request->granted);
	err = url_parse(request->rest, &url, error);
	if (err)
		return answer_error(request, err, error);
	err = take_key(request, &url);
	if (err)
		return answer_error(request, err,
				    "there is no header field with the key, or it is "
				    "longer than 255 bytes");
	if (request->stage == STAGE_DECIDED)
		err = request->outcome;
	else if (url.within_ns)
		err = wait_for_turn(request, &url);
	else if (request->stage == STAGE_BODY && is_for_batch(&url) && batch_begin(request))
		err = -EINPROGRESS;
	else
		err = held_take(files, &url, companion_now_ns(), &tokens, &held);
	if (err == -EINPROGRESS)
		return MHD_YES;
	if (err == -ECANCELED) /* the client is gone */
		return MHD_NO;
	if (err == -EAGAIN || err == -EBUSY)
		return answer_refused(request, &url, held ? held : held_find(files, &url));
	if (err)
		return answer_error(request, err, NULL);
	return answer_granted(request, tokens);
}
