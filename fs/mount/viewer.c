/* viewer - the rights of a process that opened a file, see viewer.h. */
#include "fs/mount/viewer.h"

#include <errno.h>
#include <stdlib.h>

enum { GROUPS_FIRST = 64, GROUPS_MAX = 65536, READ = 4, WRITE = 2, ENTER = 1 };

struct viewer {
	const struct tree *tree; /* borrowed */
	uint32_t uid, gid;
	int group_count;
	gid_t groups[];
};

/*
 * Finds the caller's groups. The kernel tells the first only; the others are in /proc, if the
 * process is of this process namespace. Without them it sees less.
 */
int viewer_new(const struct tree *tree, const struct caller *caller, struct viewer **viewer)
{
	int room = GROUPS_FIRST, count = 0;

	*viewer = NULL;
	if (!caller->uid)
		return 0;
	do {
		struct viewer *v = realloc(*viewer, sizeof(*v) + (size_t)room * sizeof(gid_t));

		if (!v) {
			free(*viewer);
			*viewer = NULL;
			return -ENOMEM;
		}
		*viewer = v;
		count = caller->pid ? fuse_req_getgroups(caller->request, room, v->groups) : 0;
		if (count <= room)
			break;
		room = count;
	} while (room <= GROUPS_MAX);
	(*viewer)->tree = tree;
	(*viewer)->uid = caller->uid;
	(*viewer)->gid = caller->gid;
	(*viewer)->group_count = count > 0 && count <= room ? count : 0;
	return 0;
}

int viewer_of(const struct tree *tree, uint32_t uid, uint32_t gid, struct viewer **viewer)
{
	*viewer = NULL;
	if (!uid)
		return 0;
	*viewer = calloc(1, sizeof(**viewer));
	if (!*viewer)
		return -ENOMEM;
	**viewer = (struct viewer){.tree = tree, .uid = uid, .gid = gid};
	return 0;
}

static bool is_in(const struct viewer *viewer, uint32_t gid)
{
	if (viewer->gid == gid)
		return true;
	for (int i = 0; i < viewer->group_count; i++) {
		if (viewer->groups[i] == gid)
			return true;
	}
	return false;
}

/* Decides by mode, as the kernel does. */
static bool may_access(const struct viewer *viewer, uint32_t uid, uint32_t gid, unsigned int access,
		       unsigned int wanted)
{
	if (viewer->uid == uid)
		access >>= 6;
	else if (is_in(viewer, gid))
		access >>= 3;
	return (access & wanted) == wanted;
}

static bool may_enter(const struct viewer *viewer, const struct limiter *limiter)
{
	for (; limiter; limiter = limiter->parent) {
		if (!may_access(viewer, limiter->uid, limiter->gid, limiter->access, ENTER))
			return false;
	}
	return true;
}

bool viewer_sees(const struct viewer *viewer, const struct limiter *limiter)
{
	return !viewer ||
	       (may_access(viewer, limiter->uid, limiter->gid, limiter->access, READ | ENTER) &&
		may_enter(viewer, limiter->parent));
}

bool viewer_tunes(const struct viewer *viewer, const struct limiter *limiter)
{
	return !viewer || may_access(viewer, limiter->uid, limiter->gid, limiter->access, WRITE);
}

struct subject viewer_subject(const struct limiter *limiter)
{
	if (!limiter)
		return (struct subject){.public = true};
	return (struct subject){.id = limiter->id,
				.parent = limiter->parent ? limiter->parent->id : 0,
				.uid = limiter->uid,
				.gid = limiter->gid,
				.access = limiter->access};
}

bool viewer_hears(const struct viewer *viewer, const struct subject *subject)
{
	const struct limiter *limiter;

	if (!viewer || subject->public)
		return true;
	limiter = tree_find_id(viewer->tree, subject->id);
	if (limiter)
		return viewer_sees(viewer, limiter);
	limiter = tree_find_id(viewer->tree, subject->parent);
	return limiter && may_enter(viewer, limiter) &&
	       may_access(viewer, subject->uid, subject->gid, subject->access, READ | ENTER);
}
