/* reserve.h: room on a disk that is kept for when it is full.
 *
 * A file that takes some room lies in the data directory. reserve_fs() is the disk below it, but for this: the first
 * call that finds it full gives that file up. The call fails all the same; who has promised something tries again and
 * finds room: batches in flight, marks of the spool, records that let files go. Who only asks for something new is to
 * be refused meanwhile, by reserve_is_gone(). The file comes back with reserve_keep(), once there is room for two of
 * it.
 *
 * Threads: reserve_open and reserve_keep from one at a time; all else, and the disk, any. */
#ifndef SLUICE_BASE_RESERVE_H
#define SLUICE_BASE_RESERVE_H
#include "base/fs.h"

struct reserve;

/* Never NULL. The disk is the other until reserve_open(). dir is copied; 0 bytes: there is none. */
struct reserve *reserve_new(struct fs *fs, const char *dir, uint64_t bytes);
void reserve_free(struct reserve *reserve);     /* the file stays; NULL is fine */
struct fs *reserve_fs(struct reserve *reserve); /* lives as long as the reserve */

/* Once the directory is there and ours: the file that an earlier process left, or a new one. Where there is no room for
 * two of it, there is none, and nobody is refused for that. */
void reserve_open(struct reserve *reserve);
/* Gives the file up. True: there was one, and another try may find room. */
bool reserve_give(struct reserve *reserve);
/* Makes it again if it was given up, or could not be made. */
void reserve_keep(struct reserve *reserve);
/* It was given up, and the disk is still full; why is in err. */
bool reserve_is_gone(struct reserve *reserve, struct err *err);
/* 0 while it is not there. */
uint64_t reserve_bytes(const struct reserve *reserve);
#endif
