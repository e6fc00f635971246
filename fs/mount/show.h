/*
 * show - the texts of files. All under the lock.
 */
#ifndef RATEFS_FS_MOUNT_SHOW_H
#define RATEFS_FS_MOUNT_SHOW_H

#include "fs/mount/node.h"

void show_readme(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_status(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
/*
 * Says in a line how old is what is shown of the hosts, and of how they share @limiter (may be
 * NULL), if ZooKeeper has not answered lately.
 */
void show_age(FILE *out, const struct daemon *daemon, const struct limiter *limiter);
void show_hosts(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_last_error(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_eta(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_setting(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_override(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_config(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_stat(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_waiters(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_held(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_partition_rate(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_partition_state(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_partition_holder(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void show_partition_expires(FILE *out, struct daemon *daemon, const struct node *node,
			    uint32_t uid);

#endif
