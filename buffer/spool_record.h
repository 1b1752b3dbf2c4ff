/* spool_record.h: the bytes of a spool segment. Pure: no disk, no clock.
 *
 *   file     "SLUICESP" | u32 version 1 | u32 0 | u64 spool | u64 first sequence | u32 unpromised
 *            | u32 crc32c of all before
 *   record   u32 "SREC" | u32 payload bytes | u64 sequence | u32 commit | u32 kind | u32 low half of spool
 *            | u32 crc32c of the 28 bytes before | payload | u32 crc32c of all before | u32 payload bytes
 *            | zeros up to a multiple of 8
 *   insert   flags | arrival, wall clock | query id | peer | token | shape (shape.h) | body, decoded, up to the end
 *   batch    id | the sequences of its inserts
 *   done     the sequences of inserts that the spool need not keep
 *   end      nothing: the segment was complete when it was closed
 *
 * Little endian; numbers in payloads are varints, texts have theirs in front, sets of sequences are as ranges.h prints
 * them. Nothing of a record is trusted before its checksum: its length not before that of its head. Records begin at
 * multiples of 8, so what follows a damaged one is found again. */
#ifndef SLUICE_BUFFER_SPOOL_RECORD_H
#define SLUICE_BUFFER_SPOOL_RECORD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/ranges.h"
#include "base/str.h"
#include "base/strbuf.h"

struct insert;

enum {
    SPOOL_FILE_HEAD_BYTES = 40,
    SPOOL_RECORD_HEAD_BYTES = 32,
    SPOOL_RECORD_TAIL_BYTES = 8,
    SPOOL_PAYLOAD_MAX = 1 << 30
};
enum spool_kind { SPOOL_INSERT = 1, SPOOL_BATCH, SPOOL_DONE, SPOOL_END };

struct spool_file_head {
    uint64_t spool, first_sequence;
    uint32_t unpromised; /* inserts just before the first one that may be nowhere: nobody was told that they are kept */
};

struct spool_record {
    enum spool_kind kind;
    uint32_t commit;   /* which group commit of its process wrote it; rises within a file */
    uint64_t sequence; /* of an insert its own; of the others that of the next insert */
    struct str payload;
    uint64_t offset, bytes; /* where in the file, the whole of it */
};

/* ---- writing ---- */
void spool_file_head_add(struct strbuf *out, const struct spool_file_head *head);
/* The record's head and the start of its payload, and returns the checksum up to there; more of the payload (more_bytes
 * of it) and spool_record_finish() follow. */
uint32_t spool_record_start(struct strbuf *out, uint64_t spool, const struct spool_record *record, size_t more_bytes);
/* crc: of all so far. payload_bytes: of the whole payload. */
void spool_record_finish(struct strbuf *out, uint32_t crc, size_t payload_bytes);
/* The same in one call, for a record whose payload is complete. */
void spool_record_add(struct strbuf *out, uint64_t spool, const struct spool_record *record);
/* Bytes of a record with such a payload. */
uint64_t spool_record_bytes(size_t payload_bytes);
/* What stands before the body. */
void spool_insert_print(struct strbuf *out, const struct insert *insert);

/* ---- reading ---- */
must_use bool spool_file_head_parse(struct str bytes, struct spool_file_head *head);

struct spool_insert { /* borrows from the payload */
    bool token_given;
    int64_t arrival_wall_ns;
    struct str query_id, peer, token, shape, body;
};
must_use bool spool_insert_parse(struct str payload, struct spool_insert *insert);
must_use bool spool_batch_parse(struct str payload, struct str *id, struct ranges *members);

/* Records of a file, one after the other. read: at most `bytes` at offset; fewer only at the end. */
struct spool_reader {
    bool (*read)(void *context, uint64_t offset, void *out, size_t bytes, size_t *got, struct err *err);
    void *context;
    uint64_t size;      /* of the file, as far as it is to be read */
    uint64_t spool, at; /* at: a multiple of 8 */
    struct strbuf window;
    uint64_t window_at;
};
void spool_reader_fini(struct spool_reader *reader);
enum spool_found { SPOOL_FOUND, SPOOL_BAD, SPOOL_NO_MORE, SPOOL_READ_ERROR };
/* FOUND: *record is valid until the next call. BAD: its offset and bytes are those of a range that holds no record;
 * what follows it, if anything, comes next. READ_ERROR: err says why. */
enum spool_found spool_reader_next(struct spool_reader *reader, struct spool_record *record, struct err *err);
#endif
