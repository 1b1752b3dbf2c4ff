/* tokens_log.c: the bytes of tokens.log.
 *
 *   header  "SLUICETL" | u32 version 1 | u32 crc32c of the 12 bytes before
 *   record  u32 crc32c of the 44 bytes after | u8 kind | 3 zeros | u64 identity lo, hi | i64 wall_ns | u64 partition
 *           | u64 block
 *
 * All little endian. Records have one size, so that a damaged one hides nothing behind it. */
#include "base/little_endian.h"
#include "storage/tokens.h"

enum { VERSION = 1 };
static const char magic[8] = { 'S', 'L', 'U', 'I', 'C', 'E', 'T', 'L' };

void tokens_log_add_header(struct strbuf *out)
{
    char bytes[TOKENS_LOG_HEADER_BYTES];
    memcpy(bytes, magic, sizeof magic);
    le_store(bytes + 8, VERSION, 4);
    le_store(bytes + 12, crc32c(0, str_make(bytes, 12)), 4);
    strbuf_add_bytes(out, bytes, sizeof bytes);
}

void tokens_log_add(struct strbuf *out, const struct tokens_log_record *record)
{
    char bytes[TOKENS_LOG_RECORD_BYTES] = { 0 };
    le_store(bytes + 4, record->kind, 1);
    le_store(bytes + 8, record->identity.lo, 8);
    le_store(bytes + 16, record->identity.hi, 8);
    le_store(bytes + 24, (uint64_t)record->wall_ns, 8);
    le_store(bytes + 32, record->partition, 8);
    le_store(bytes + 40, record->block, 8);
    le_store(bytes, crc32c(0, str_make(bytes + 4, sizeof bytes - 4)), 4);
    strbuf_add_bytes(out, bytes, sizeof bytes);
}

static bool read_record(const char *bytes, struct tokens_log_record *record)
{
    if (le_load(bytes, 4) != crc32c(0, str_make(bytes + 4, TOKENS_LOG_RECORD_BYTES - 4)))
        return false;
    uint64_t kind = le_load(bytes + 4, 4);
    if (kind < TOKENS_LOG_TOKEN || kind > TOKENS_LOG_GONE)
        return false;
    record->kind = (enum tokens_log_kind)kind;
    record->identity = (struct hash128){ .lo = le_load(bytes + 8, 8), .hi = le_load(bytes + 16, 8) };
    record->wall_ns = (int64_t)le_load(bytes + 24, 8);
    record->partition = le_load(bytes + 32, 8);
    record->block = le_load(bytes + 40, 8);
    return true;
}

void tokens_log_read(struct str bytes, void (*each)(void *context, const struct tokens_log_record *record),
                     void *context, struct tokens_log_report *report)
{
    *report = (struct tokens_log_report){ 0 };
    if (bytes.len < TOKENS_LOG_HEADER_BYTES || memcmp(bytes.data, magic, sizeof magic) != 0 ||
        le_load(bytes.data + 8, 4) != VERSION || le_load(bytes.data + 12, 4) != crc32c(0, str_sub(bytes, 0, 12))) {
        report->bad_header = true;
        return;
    }
    report->valid_bytes = TOKENS_LOG_HEADER_BYTES;
    size_t bad = 0;
    for (size_t at = TOKENS_LOG_HEADER_BYTES; at + TOKENS_LOG_RECORD_BYTES <= bytes.len;
         at += TOKENS_LOG_RECORD_BYTES) {
        struct tokens_log_record record;
        if (!read_record(bytes.data + at, &record)) {
            bad++;
            continue;
        }
        report->damaged += bad;
        bad = 0;
        report->records++;
        report->valid_bytes = at + TOKENS_LOG_RECORD_BYTES;
        each(context, &record);
    }
}

uint64_t tokens_partition(const char *dir)
{
    uint64_t hash = hash64(str_of(dir));
    return hash == 0 ? 1 : hash;
}
