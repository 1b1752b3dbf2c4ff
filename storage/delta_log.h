/* delta_log.h: TABLE/_delta_log on disk: replay, commits, checkpoints and their removal.
 *
 * A version is put, never replaced: `_tmp_` file, synced, renamed to a name that must not be there, directory synced.
 * One thread at a time. */
#ifndef SLUICE_STORAGE_DELTA_LOG_H
#define SLUICE_STORAGE_DELTA_LOG_H
#include "base/fs.h"
#include "storage/delta_state.h"

struct delta_log {
    struct fs *fs;
    char *dir;
    struct delta_state state;
    int64_t checkpoint;         /* version of the newest, or -1 */
    uint64_t checkpoint_behind; /* bytes of the commits after it */
};

/* Replays the log of a table, if there is one. doubtful: a commit may have failed half-way, so the newest one is
 * written once more to be sure of it. Errors: CORRUPTED_DATA for a log that is damaged or not ours; disk errors. */
must_use bool delta_log_open(struct fs *fs, const char *table_dir, const char *uuid, bool doubtful,
                             struct delta_log **log, struct err *err);
void delta_log_free(struct delta_log *log);
/* Puts the next version and takes it into the state. After a failure the log is only to be freed: what is on disk is
 * not known. Errors: FILE_ALREADY_EXISTS (somebody else wrote it), disk errors. */
must_use bool delta_log_commit(struct delta_log *log, struct str lines, struct err *err);
/* Whether a version is there that was not put here. */
bool delta_log_is_overtaken(struct delta_log *log);
/* Writes a checkpoint of the present version. Files removed before a time are left out, and forgotten. */
must_use bool delta_log_checkpoint(struct delta_log *log, int64_t now_ms, int64_t forget_before_ms, struct err *err);
/* Removes the versions that nobody needs any more: those below the newest checkpoint such that all before it are older
 * than the time. No gap is left behind it. */
must_use bool delta_log_clean(struct delta_log *log, int64_t before_ms, struct err *err);

/* Reads all of a log that nobody uses, and changes nothing: each version after the other, each checkpoint against the
 * versions it stands for. found: what is not as it was written (damage), and what a stop left behind. The log is as far
 * as it could be replayed; free it. */
typedef void delta_found_fn(void *context, bool damage, const char *path, const char *why);
struct delta_log *delta_log_check(struct fs *fs, const char *table_dir, const char *uuid, delta_found_fn *found,
                                  void *context);
#endif
