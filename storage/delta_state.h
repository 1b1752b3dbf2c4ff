/* delta_state.h: what a Delta log amounts to at one version, and the lines that lead from one to the next.
 *
 * Pure: bytes of commits in, bytes of commits out. What is printed here is also read here, when it is committed and at
 * the next start, so the state in memory is always the one that the log gives. Not synchronised. */
#ifndef SLUICE_STORAGE_DELTA_STATE_H
#define SLUICE_STORAGE_DELTA_STATE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "base/must.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "storage/part.h"

enum { DELTA_READER_VERSION = 1, DELTA_WRITER_VERSION = 2 };

/* A data file that the log names: live, or removed not long ago. */
struct delta_file {
    char *path; /* relative to the table, URL-encoded, as the log has it */
    char *dir;  /* its directory, plain */
    struct part_name name;
    char *partition; /* value of the partition column; NULL: null, or there is none */
    char *stats;
    uint64_t size, rows;
    int64_t modified_ms;
    int64_t removed_ms; /* 0: live */
    uint64_t seen;      /* mark of whoever looks through the files */
};

struct delta_state {
    char uuid[UUID_TEXT_BYTES]; /* of the table: all commits have to be its */
    int64_t version;            /* -1: nothing is published */
    json_t *meta_data;          /* NULL before the first */
    bool has_protocol;
    struct map files; /* by path: struct delta_file */
    uint64_t live_count, txn_version;
    uint64_t mark;
};

void delta_state_init(struct delta_state *state, const char uuid[UUID_TEXT_BYTES]);
void delta_state_fini(struct delta_state *state);
/* The live file of that path, or NULL. */
struct delta_file *delta_state_live(const struct delta_state *state, struct str path);
/* Files that were removed before a time are no longer known. */
void delta_state_forget(struct delta_state *state, int64_t before_ms);
/* The column that the files have a value of, as the metaData says; NULL: none. */
const char *delta_state_partition_column(const struct delta_state *state);
/* Files in order of their paths; free the array. */
struct delta_file **delta_state_files(const struct delta_state *state, size_t *count);

/* Appends the path of a part as the log has it. */
void delta_path_add(struct strbuf *out, const struct part *part);

/* ---- commits ---- */

enum delta_operation {
    DELTA_CREATE_TABLE,
    DELTA_WRITE,
    DELTA_OPTIMIZE,
    DELTA_DELETE,
    DELTA_TRUNCATE,
    DELTA_ADD_COLUMNS,
    DELTA_CHANGE_COLUMN
};
const char *delta_operation_name(enum delta_operation operation);

struct delta_commit {
    enum delta_operation operation;
    int64_t time_ms;
    json_t *meta_data; /* lent; NULL: it does not change */
    bool data_change;  /* of all files */
    struct delta_file *const *adds;
    size_t adds_count;
    struct delta_file *const *removes;
    size_t removes_count;
};
/* Appends the lines of the version after state's. */
void delta_commit_print(const struct delta_state *state, const struct delta_commit *commit, struct rng *rng,
                        struct strbuf *out);

/* Takes the lines of the version after state's. On failure the state is only to be freed. Errors: CORRUPTED_DATA for
 * what is no log of ours. */
must_use bool delta_state_apply(struct delta_state *state, struct str lines, struct err *err);

/* ---- single actions, for delta_checkpoint.c ---- */
/* file is taken over in any case. */
must_use bool delta_state_add(struct delta_state *state, struct delta_file *file, struct err *err);
/* A file with the path, its directory and name found in it. Errors: CORRUPTED_DATA. */
must_use bool delta_file_new(struct str path, struct delta_file **file, struct err *err);
void delta_file_free(struct delta_file *file);
void delta_file_set_partition(struct delta_file *file, struct str value); /* empty: null, as Delta has it */
/* Statistics that were printed here, with their numRecords. */
must_use bool delta_file_set_stats(struct delta_file *file, struct str stats, struct err *err);
/* meta_data is taken over in any case. */
must_use bool delta_state_set_meta_data(struct delta_state *state, json_t *meta_data, struct err *err);
must_use bool delta_state_set_protocol(struct delta_state *state, int64_t reader, int64_t writer, struct err *err);
/* Whose txn is ours. */
void delta_state_app_id(const struct delta_state *state, struct strbuf *out);
#endif
