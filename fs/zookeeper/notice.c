/* notice - see notice.h. */
#include "fs/zookeeper/notice.h"

struct zookeeper_event *zookeeper_events_add(struct zookeeper_events *events,
					     enum zookeeper_event_kind kind)
{
	struct zookeeper_event *event;

	if (events->count == ZOOKEEPER_EVENTS_MAX)
		zookeeper_events_flush(events);
	event = &events->list[events->count++];
	event->kind = kind;
	event->opening = events->opening;
	return event;
}

void zookeeper_events_flush(struct zookeeper_events *events)
{
	uint32_t count = events->count;

	/* Who receives may give orders, not add events: the list stays as it is. */
	events->count = 0;
	if (count)
		events->receiver->receive(events->receiver, events->list, count);
}
