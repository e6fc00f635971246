/*
 * tell - bodies that are written to a file: `/v1/feedback/LIMITER` and `/v1/charge/LIMITER`. Header
 * fields of a response, as message/http, become feedback.
 */
#include "companions/headers.h"
#include "companions/serve/answer.h"
#include "companions/serve/route.h"

#include "core/values/quantity.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Tells whether the body is the header fields of a response. */
static bool has_headers(const struct request *request)
{
	static const char type[] = "message/http";
	const char *value = MHD_lookup_connection_value(request->connection->mhd, MHD_HEADER_KIND,
							MHD_HTTP_HEADER_CONTENT_TYPE);

	return value && !strncasecmp(value, type, strlen(type)) &&
	       strchr("; ", value[strlen(type)]);
}

/* Reads the parameters `unit=HEADER=UNIT`, with & between them, which are cut off the address. */
static int take_names(struct request *request, struct unit_names *names, char error[ERROR_TEXT])
{
	static const char unit[] = "unit=";
	char *parameters = strchr(request->rest, '?'), *parameter;

	if (parameters)
		*parameters++ = '\0';
	while ((parameter = strsep(&parameters, "&"))) {
		if (strncmp(parameter, unit, strlen(unit)) != 0 ||
		    !headers_add_name(names, parameter + strlen(unit)))
			return text_refuse(-EINVAL, error, parameter,
					   "not unit=HEADER=UNIT, such as unit=tokens=tpm");
	}
	return 0;
}

/* Reads the `rate` of the limiter of @request; there are no limits if that cannot be read. */
static void read_rate(const struct request *request, struct settings *settings)
{
	char path[URL_FILE_TEXT], text[SETTING_TEXT], error[ERROR_TEXT];
	struct url url;
	ssize_t got;
	int file;

	*settings = SETTINGS_DEFAULT;
	if (url_parse(request->rest, &url, error))
		return;
	url_file(&url, "rate", path);
	file = held_open(&request->connection->worker->files, path, O_RDONLY);
	if (file < 0)
		return;
	got = read(file, text, sizeof(text) - 1);
	close(file);
	text[got > 0 ? got : 0] = '\0';
	(void)setting_parse(SETTING_RATE, text, settings, error);
}

/* Makes @text of the header fields in the body. 0 or -errno, with a sentence in @error. */
static int read_headers(struct request *request, char text[HEADERS_TEXT], char error[ERROR_TEXT])
{
	struct settings settings = SETTINGS_DEFAULT;
	struct unit_names names = {.count = 0};
	struct header_report report;
	struct timespec now;
	int err = take_names(request, &names, error);

	if (err)
		return err;

	clock_gettime(CLOCK_REALTIME, &now);
	err = headers_read(request->body, request->body_size,
			   (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec, &report,
			   error);
	if (err)
		return err;
	if (headers_have_units(&report, &names))
		read_rate(request, &settings);
	headers_name_units(&report, &names, &settings);
	headers_print(&report, NULL, text);
	return 0;
}

/* Writes @size bytes of @bytes, and @end, to the file @name of the limiter of @request. */
static enum MHD_Result tell(struct request *request, const char *name, const char *bytes,
			    size_t size, const char *end)
{
	char path[URL_FILE_TEXT], error[ERROR_TEXT];
	const struct iovec parts[] = {{(void *)(uintptr_t)bytes, size},
				      {(void *)(uintptr_t)end, strlen(end)}};
	struct url url;
	int err, file;

	if (strchr(request->rest, '?'))
		return answer_error(request, -EINVAL, "this address has no parameters");
	err = url_parse(request->rest, &url, error);
	if (err)
		return answer_error(request, err, error);
	url_file(&url, name, path);
	if (!size)
		return answer_error(request, -EINVAL, "the body is empty");
	if (size > BODY_MAX)
		return answer_error(request, -E2BIG, "the body has 4095 bytes at most");
	file = held_open(&request->connection->worker->files, path, O_WRONLY);
	if (file < 0)
		return answer_error(request, file, NULL);
	err = writev(file, parts, 2) < 0 ? -errno : 0;
	close(file);
	return err ? answer_error(request, err, NULL)
		   : answer_text(request, MHD_HTTP_NO_CONTENT, "");
}

enum MHD_Result tell_feedback(struct request *request)
{
	char text[HEADERS_TEXT], error[ERROR_TEXT];
	int err;

	if (!has_headers(request))
		return tell(request, "feedback", request->body, request->body_size, "\n");
	err = read_headers(request, text, error);
	return err ? answer_error(request, err, error)
		   : tell(request, "feedback", text, strlen(text), "");
}

enum MHD_Result tell_charge(struct request *request)
{
	return tell(request, "charge", request->body, request->body_size, "");
}
