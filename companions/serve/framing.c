/* framing - whether all who read a request agree on where it ends, see framing.h. */
#include "companions/serve/framing.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

struct seen {
	unsigned int lengths, encodings, hosts;
	bool is_chunked; /* the encoding is chunked, and nothing else */
	bool is_damaged; /* a field that some read as another one, as two, or as none */
};

static bool is_name(const char *name, size_t size, const char *wanted)
{
	return size == strlen(wanted) && !strncasecmp(name, wanted, size);
}

static enum MHD_Result see_field(void *cls, enum MHD_ValueKind kind, const char *name,
				 size_t name_size, const char *value, size_t value_size)
{
	struct seen *seen = cls;

	(void)kind;
	if (is_name(name, name_size, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
		seen->lengths++;
		/* As of one that is folded: libmicrohttpd knows no length then. */
		seen->is_damaged |= !value_size;
	} else if (is_name(name, name_size, MHD_HTTP_HEADER_HOST)) {
		seen->hosts++;
	} else if (is_name(name, name_size, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
		seen->encodings++;
		seen->is_chunked = is_name(value, value_size, "chunked");
	}
	if (memchr(name, ' ', name_size) || memchr(name, '\t', name_size) ||
	    memchr(name, '\r', name_size) || memchr(name, '\0', name_size) ||
	    (value_size && (memchr(value, '\r', value_size) || memchr(value, '\0', value_size))))
		seen->is_damaged = true;
	return MHD_YES;
}

const char *framing_refusal(struct MHD_Connection *mhd, const char *version)
{
	struct seen seen = {.lengths = 0};

	(void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, see_field, &seen);
	if (seen.lengths + seen.encodings > 1)
		return "the length of the body is given twice";
	if (seen.encodings && (!seen.is_chunked || !strcmp(version, MHD_HTTP_VERSION_1_0)))
		return "the body is neither of a length that is given nor in chunks";
	if (seen.hosts > 1)
		return "Host is given twice";
	return seen.is_damaged ? "a header field is damaged" : NULL;
}
