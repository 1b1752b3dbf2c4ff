/* letter.h: a dead letter as bytes: a record small enough for LMDB, and a file where the rest does not fit.
 *
 *   record   format 2 | flags | first, last, code, row, attempts, body bytes, rows | [file: name, bytes, hash]
 *            | column | reason | [blob] | [body, zstd] | xxh3 over key and all before
 *   file     "SLUICEDL" | lengths of blob, reason, body | xxh3 over the head, blob and reason
 *            | blob | reason | body, zstd
 *   blob     what never changes: database, table, format, user, peer, query, columns, token, settings
 *
 * Format 1 has no rows. Numbers are little endian. Key and record together are at most LETTER_RECORD_MAX bytes. The
 * body leaves the record first, then the blob; a reason that still does not fit is cut there and whole in the file.
 * Pure: no disk, no clock.
 */
#ifndef SLUICE_DLQ_LETTER_H
#define SLUICE_DLQ_LETTER_H
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "dlq/dlq.h"

enum {
    LETTER_KEY_BYTES = 9,
    LETTER_RECORD_MAX = 2000,
    LETTER_REASON_MAX = 4096,
    LETTER_COLUMN_MAX = 255,
    LETTER_FILE_NAME_BYTES = 40, /* 32 hex digits, ".letter", NUL */
    LETTER_FILE_HEAD_BYTES = 32
};
#define LETTER_FILE_SUFFIX ".letter"

/* Key of a letter: 'L' and the id, big endian, so that LMDB's order is that of the ids. */
void letter_key(uint64_t id, unsigned char key[LETTER_KEY_BYTES]);
bool letter_key_id(struct str key, uint64_t *id);

/* The file that belongs to a record; bytes 0 without one. */
struct letter_file {
    char name[LETTER_FILE_NAME_BYTES];
    uint64_t bytes, hash;
    bool has_blob, has_reason, has_body;
};

struct letter_image {
    struct strbuf record; /* without its checksum, which needs the id */
    struct strbuf content;
    struct letter_file file;
    int code;      /* the letter's */
    uint64_t rows; /* the same */
};
/* Fills image, which starts zeroed. A reason or column beyond the limits is cut. */
void letter_encode(const struct letter *letter, struct rng *rng, struct letter_image *image);
/* Appends the checksum: the record belongs to this id from now on. */
void letter_seal(struct letter_image *image, uint64_t id);
void letter_image_fini(struct letter_image *image);
/* Bytes on disk of a letter. */
static inline uint64_t letter_stored_bytes(uint64_t record_bytes, const struct letter_file *file)
{
    return LETTER_KEY_BYTES + record_bytes + file->bytes;
}

/* Checks and reads a record; strings are copied into arena. What is in the file is left empty. with_body: an inline
 * body is unpacked too. Errors: CORRUPTED_DATA. */
must_use bool letter_decode(uint64_t id, struct str record, bool with_body, struct arena *arena, struct letter *letter,
                            struct letter_file *file, struct err *err);
/* The head of the file: how many bytes of it, from its start, hold blob and reason. Errors: CORRUPTED_DATA. */
must_use bool letter_file_details_bytes(struct str head, uint64_t *bytes, struct err *err);
/* Adds blob and reason from the beginning of the file. */
must_use bool letter_decode_details(struct str start, const struct letter_file *file, struct arena *arena,
                                    struct letter *letter, struct err *err);
/* Adds all that is in the file, the body included. */
must_use bool letter_decode_file(struct str content, const struct letter_file *file, struct arena *arena,
                                 struct letter *letter, struct err *err);
/* A copy whose strings live in arena. */
void letter_copy(const struct letter *from, bool with_body, struct arena *arena, struct letter *to);
#endif
