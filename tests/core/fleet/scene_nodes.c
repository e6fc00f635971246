/* scene_nodes - the nodes that hosts share, in a table, see scene.h. */
#include "tests/core/fleet/scene.h"

#include <stdio.h>

static const char *keep(struct scene *scene, const char *text)
{
	if (!text)
		return "";
	assert_true(scene->string_count < STRINGS_MAX);
	scene->strings[scene->string_count] = strdup(text);
	assert_non_null(scene->strings[scene->string_count]);
	return scene->strings[scene->string_count++];
}

static struct node *find(const struct scene *scene, const char *path)
{
	for (uint32_t i = 0; i < scene->node_count; i++) {
		if (!strcmp(scene->nodes[i].path, path))
			return (struct node *)&scene->nodes[i];
	}
	return NULL;
}

/* The name of @node below @path; NULL: it is no child. */
static const char *name_below(const struct node *node, const char *path)
{
	size_t length = strlen(path);

	if (strncmp(node->path, path, length) != 0 || node->path[length] != '/' ||
	    strchr(node->path + length + 1, '/'))
		return NULL;
	return node->path + length + 1;
}

static enum answer create(struct scene *scene, struct operation *operation, uint64_t zxid)
{
	struct node *node = &scene->nodes[scene->node_count];
	char path[NODE_PATH_MAX];

	snprintf(path, sizeof(path), "%s", operation->path);
	if (operation->flags & NODE_SEQUENTIAL) {
		snprintf(path, sizeof(path), "%.200s%010u", operation->path, scene->sequence++);
		free(operation->made);
		operation->made = strdup(path);
	}
	if (find(scene, path))
		return ANSWER_EXISTS;
	assert_true(scene->node_count < NODES_MAX);
	*node = (struct node){.data = keep(scene, operation->data)};
	strcpy(node->path, path);
	node->made_zxid = zxid;
	node->zxid = zxid;
	node->session = operation->flags & NODE_EPHEMERAL ? scene->session : 0;
	scene->node_count++;
	return ANSWER_OK;
}

static enum answer execute(struct scene *scene, struct operation *operation, uint64_t zxid)
{
	struct node *node = find(scene, operation->path);

	if (operation->kind == OPERATION_CREATE)
		return create(scene, operation, zxid);
	if (!node)
		return ANSWER_NO_NODE;
	if (operation->version != NODE_VERSION_ANY && operation->version != node->version)
		return ANSWER_BAD_VERSION;
	if (operation->kind == OPERATION_SET) {
		node->data = keep(scene, operation->data);
		node->version++;
		node->zxid = zxid;
	}
	if (operation->kind == OPERATION_DELETE) {
		for (uint32_t i = 0; i < scene->node_count; i++) {
			if (name_below(&scene->nodes[i], operation->path))
				return ANSWER_NOT_EMPTY;
		}
		*node = scene->nodes[--scene->node_count];
	}
	return ANSWER_OK;
}

void scene_execute(struct scene *scene, struct request *request)
{
	static struct node before[NODES_MAX];
	uint32_t count = scene->node_count;

	memcpy(before, scene->nodes, sizeof(before));
	request->zxid = scene->epoch << 32 | ++scene->writes;
	for (uint32_t i = 0; i < request->operation_count; i++) {
		request->answer = execute(scene, &request->operations[i], request->zxid);
		if (request->answer == ANSWER_OK)
			continue;
		request->failed = i;
		memcpy(scene->nodes, before, sizeof(before));
		scene->node_count = count;
		return;
	}
}

void scene_look(struct scene *scene, struct request *request)
{
	const struct node *node = find(scene, request->path);
	char *to;

	request->answer = node ? ANSWER_OK : ANSWER_NO_NODE;
	if (!node)
		return;
	if (request->kind == REQUEST_GET) {
		request->length = strlen(node->data);
		if (request->length > NODE_DATA_MAX)
			request->answer = ANSWER_REFUSED;
		else
			request->data = strdup(node->data);
		request->version = node->version;
		request->zxid = node->zxid;
		request->made_zxid = node->made_zxid;
		return;
	}
	((struct node *)node)->watched |= request->watch;
	request->names = calloc(scene->node_count, sizeof(*request->names) + NODE_PATH_MAX);
	assert_non_null(request->names);
	to = (char *)(request->names + scene->node_count);
	for (uint32_t i = 0; i < scene->node_count; i++) {
		const char *name = name_below(&scene->nodes[i], request->path);

		if (!name)
			continue;
		request->names[request->name_count++] = to;
		to = stpcpy(to, name) + 1;
	}
}

const struct node *scene_node(const struct scene *scene, const char *path)
{
	return find(scene, path);
}

/* Tells the host of a change among the children of a folder, if it watches them. */
static void tell(struct scene *scene, const char *path)
{
	char folder[NODE_PATH_MAX];
	struct node *node;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	node = find(scene, folder);
	if (!node || !node->watched)
		return;
	node->watched = false;
	fleet_changed(scene->fleet, folder, scene->now_ns);
}

void scene_set(struct scene *scene, const char *path, const char *data)
{
	struct operation operation = {.path = (char *)path, .data = (char *)data};
	bool there = find(scene, path);

	operation.kind = there ? OPERATION_SET : OPERATION_CREATE;
	operation.version = NODE_VERSION_ANY;
	assert_int_equal(execute(scene, &operation, scene->epoch << 32 | ++scene->writes),
			 ANSWER_OK);
	if (!there)
		tell(scene, path);
}

void scene_delete(struct scene *scene, const char *path)
{
	struct operation operation = {.kind = OPERATION_DELETE, .path = (char *)path};

	operation.version = NODE_VERSION_ANY;
	assert_int_equal(execute(scene, &operation, 0), ANSWER_OK);
	tell(scene, path);
}

void scene_lay(struct scene *scene, const char *folder, const char *names)
{
	char path[NODE_PATH_MAX];

	for (uint32_t i = scene->node_count; i-- > 0;) {
		if (i < scene->node_count && name_below(&scene->nodes[i], folder))
			scene_delete(scene, strcpy(path, scene->nodes[i].path));
	}
	while (*names) {
		int length = (int)strcspn(names, " ");

		snprintf(path, sizeof(path), "%s/%.*s", folder, length, names);
		scene_set(scene, path, NULL);
		names += length;
		names += strspn(names, " ");
	}
}

bool scene_has(const struct scene *scene, const char *path)
{
	char whole[NODE_PATH_MAX];
	const char *hid = strstr(path, "HID");

	if (!hid)
		return find(scene, path);
	snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(hid - path), path, fleet_hid(scene->fleet),
		 hid + strlen("HID"));
	return find(scene, whole);
}
