/* notice - see notice.h. */
#include "fs/zookeeper/notice.h"

struct zookeeper_notice *zookeeper_notices_add(struct zookeeper_notices *notices,
					       enum zookeeper_notice_kind kind)
{
	struct zookeeper_notice *notice;

	if (notices->count == ZOOKEEPER_NOTICES_MAX)
		zookeeper_notices_flush(notices);
	notice = &notices->list[notices->count++];
	notice->kind = kind;
	notice->opening = notices->opening;
	return notice;
}

void zookeeper_notices_flush(struct zookeeper_notices *notices)
{
	uint32_t count = notices->count;

	/* A receiver may give orders, not add notices: the list stays as it is. */
	notices->count = 0;
	if (count)
		notices->receiver->receive(notices->receiver, notices->list, count);
}
