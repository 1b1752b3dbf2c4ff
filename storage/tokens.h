/* tokens.h: what a table remembers of its inserts, and the log that keeps what its parts' footers cannot.
 *
 * struct tokens is the deduplication window in memory: identities that are known, and those claimed by an insert that
 * is still being written. Explicit tokens and content hashes are counted apart. Any thread; LOCK_TOKENS guards it.
 *
 * tokens.log (`_sluice/tokens.log`) is a list of 48-byte records with a checksum each: identities of parts that a merge
 * replaced, flushes that are known to be complete, and cuts (TRUNCATE, DROP PARTITION). Layout: docs/FILES.md. The
 * functions on it are pure. */
#ifndef SLUICE_STORAGE_TOKENS_H
#define SLUICE_STORAGE_TOKENS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/strbuf.h"
#include "storage/part.h"

/* ---- the window ---- */
struct tokens;

struct token_entry {
    struct hash128 identity;
    enum dedup_kind kind;
    int64_t wall_ns;    /* when it was committed */
    uint64_t partition; /* hash of the partition's directory name: what DROP PARTITION forgets */
};
struct token_claim {
    struct hash128 identity;
    enum dedup_kind kind;
    bool known; /* set by tokens_claim: committed before, or an earlier one of the same call */
};

/* window 0 or window_s 0 switch it off: nothing is ever known. */
struct tokens *tokens_new(uint64_t window, uint64_t window_s);
void tokens_free(struct tokens *tokens);
void tokens_limits(struct tokens *tokens, uint64_t window, uint64_t window_s);

/* Claims all identities at once, waiting while another insert holds one of them: then its fate decides. Those that come
 * back with known set are not claimed. */
void tokens_claim(struct tokens *tokens, struct token_claim *claims, size_t count);
/* The claims that were not known become known, or free again. partitions[i] is where claim i went. */
void tokens_commit(struct tokens *tokens, const struct token_claim *claims, const uint64_t *partitions, size_t count,
                   uint64_t mono_ns, int64_t wall_ns);
void tokens_release(struct tokens *tokens, const struct token_claim *claims, size_t count);

bool tokens_known(struct tokens *tokens, struct hash128 identity, enum dedup_kind kind);
/* Recovery: any order; sorted by time inside. */
void tokens_load(struct tokens *tokens, struct token_entry *entries, size_t count, uint64_t mono_ns, int64_t wall_ns);
/* Drops what is too old. While the wall clock has jumped against the monotonic one nothing is, for an hour. */
void tokens_expire(struct tokens *tokens, uint64_t mono_ns, int64_t wall_ns);
void tokens_forget(struct tokens *tokens);                               /* all that is known */
void tokens_forget_partition(struct tokens *tokens, uint64_t partition); /* what went there */
size_t tokens_count(struct tokens *tokens);
int64_t tokens_oldest_wall_ns(struct tokens *tokens); /* when the oldest that is known was committed; 0: none is */
/* A copy of all that is known, oldest first; the caller frees. */
void tokens_copy(struct tokens *tokens, struct token_entry **entries, size_t *count);

/* ---- the log ---- */
enum tokens_log_kind {
    TOKENS_LOG_TOKEN = 1,   /* identity, wall_ns, partition */
    TOKENS_LOG_CONTENT = 2, /* the same for a content hash */
    TOKENS_LOG_FLUSH = 3,   /* identity is a flush that is complete, whatever is found of it later */
    TOKENS_LOG_CUT = 4,     /* parts of `partition` (0: of all) whose last block is at most `block` are no more, and
                               what stands before it of their identities is forgotten */
    TOKENS_LOG_GONE = 5     /* parts of `partition` with blocks from identity.lo to `block` are no more; their
                               identities stay */
};
enum { TOKENS_LOG_HEADER_BYTES = 16, TOKENS_LOG_RECORD_BYTES = 48 };
struct tokens_log_record {
    enum tokens_log_kind kind;
    struct hash128 identity;
    int64_t wall_ns;
    uint64_t partition, block;
};
void tokens_log_add_header(struct strbuf *out);
void tokens_log_add(struct strbuf *out, const struct tokens_log_record *record);

struct tokens_log_report {
    size_t records;
    size_t damaged;     /* records that did not check, with good ones after them */
    size_t valid_bytes; /* up to the end of the last good record: what follows is a torn tail */
    bool bad_header;    /* then nothing was read */
};
/* Calls each for every good record, in order. */
void tokens_log_read(struct str bytes, void (*each)(void *context, const struct tokens_log_record *record),
                     void *context, struct tokens_log_report *report);
uint64_t tokens_partition(const char *dir); /* of a partition's directory name; never 0 */
#endif
