/* fs_sim.h: a disk in memory that can fail and lose power.
 *
 * Each file knows which of its bytes were synced, each directory which of its entries. The program sees everything at
 * once, as with a real cache; fs_sim_crash() then keeps what was synced and, by the seed's choice, some of the rest:
 *   - appended bytes: nothing, a prefix, or any subset of their 512-byte sectors with zeros in the holes;
 *   - truncations: done or not;
 *   - entries made, renamed or unlinked since their directory's sync: none, the first few, or any subset that respects
 *     the order of operations on one name. A rename is whole or not at all. fs_sync of a file says nothing about its
 * entry. A failed sync loses the unsynced bytes for good: they stay readable until the crash, and a second sync
 * "succeeds", as on Linux. A failed sync_dir leaves its entries unsynced.
 *
 * Threads: any; one lock (LOCK_LOG's rank) guards all of it. */
#ifndef SLUICE_TESTS_SIM_FS_SIM_H
#define SLUICE_TESTS_SIM_FS_SIM_H
#include "base/fs.h"

/* "/" and "." exist, "/tmp" and the like do not. */
struct fs *fs_sim_new(void);
void fs_sim_free(struct fs *fs); /* must: no file is open */

/* Every call of struct fs counts as one operation. */
uint64_t fs_sim_ops(struct fs *fs);
/* The n-th operation from now (1: the next) fails with code, once. 0 takes it back. */
void fs_sim_fail_at(struct fs *fs, uint64_t n, enum err_code code);
/* The n-th operation from now and all after it fail, until fs_sim_crash(): the power goes at that moment. */
void fs_sim_fail_from(struct fs *fs, uint64_t n, enum err_code code);
/* How many operations were made to fail since the last fs_sim_fail_at/_from. */
uint64_t fs_sim_failures(struct fs *fs);
/* A failing append leaves a prefix of its bytes, as long as the seed says. Off until called. */
void fs_sim_short_writes(struct fs *fs, uint64_t seed);
/* Bytes the disk can hold; appends beyond it write what fits, then fail with NOT_ENOUGH_SPACE. */
void fs_sim_capacity(struct fs *fs, uint64_t bytes);

/* Power loss. Files that are open can only be closed afterwards; failure injection is off. */
void fs_sim_crash(struct fs *fs, uint64_t seed);
/* As if every file and directory had been synced. */
void fs_sim_sync_all(struct fs *fs);
/* Flips bits of one byte that is there; must: the file is. */
void fs_sim_flip(struct fs *fs, const char *path, uint64_t offset, unsigned char mask);
uint64_t fs_sim_open_files(struct fs *fs);
/* One line a file, "PATH BYTES SYNCED_BYTES", directories with "/"; to print when a test fails. */
void fs_sim_dump(struct fs *fs, struct strbuf *out);
#endif
