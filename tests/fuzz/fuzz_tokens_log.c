/* What is read from a log of any bytes, written anew, reads back the same; what is said to be valid lies in the log. */
#include <stdint.h>

#include "storage/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(void *context, const struct tokens_log_record *record)
{
    must(record->kind >= TOKENS_LOG_TOKEN && record->kind <= TOKENS_LOG_CUT);
    tokens_log_add(context, record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct strbuf once = { 0 }, twice = { 0 };
    struct tokens_log_report report, again;
    tokens_log_add_header(&once);
    tokens_log_add_header(&twice);
    tokens_log_read(str_make(data, size), add, &once, &report);
    must(report.valid_bytes <= size);
    must(report.bad_header || report.valid_bytes >= TOKENS_LOG_HEADER_BYTES);
    must(report.records * TOKENS_LOG_RECORD_BYTES <= size);
    tokens_log_read(strbuf_view(&once), add, &twice, &again);
    must(!again.bad_header && again.damaged == 0 && again.records == report.records);
    must(again.valid_bytes == once.len);
    must(str_eq(strbuf_view(&once), strbuf_view(&twice)));
    strbuf_fini(&once);
    strbuf_fini(&twice);
    return 0;
}
