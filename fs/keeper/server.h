/*
 * server - the server's side of what it and the keeper say to each other, see keeper.h.
 */
#ifndef RATEFS_FS_KEEPER_SERVER_H
#define RATEFS_FS_KEEPER_SERVER_H

#include "fs/keeper/keeper.h"

/*
 * Receives the keeper's greeting, and descriptors, which the caller closes: of the state's memory,
 * and one that names the directory of settings (-1: there is none, or the keeper is one of 0.2.0,
 * which tells its path only). 0, or -1 after a message.
 */
int server_hear(int control, struct keeper_hello *hello, int *state, int *directory);

/* Sends @message to the keeper. 0, or -1 after a message. */
int server_tell(int control, enum keeper_message message);

/*
 * Has this process end once the keeper has: as at its start, which a change of the user has undone.
 */
void server_follow(const struct keeper_hello *hello);

/* Asks the keeper for the mount. Returns how many descriptors @devices are, or -1. */
int server_ask_mount(int control, struct keeper_mount *mount, int devices[KEEPER_DEVICES]);

#endif
