/* output.h: a block becomes the body of an answer: TabSeparated, JSON, CSV and their kin, Native, RowBinary,
 * Parquet and Arrow. */
#ifndef SLUICE_FORMAT_OUTPUT_H
#define SLUICE_FORMAT_OUTPUT_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/block.h"
#include "format/format_settings.h"

struct output_format {
    const char *name;        /* canonical; X-ClickHouse-Format says header_name */
    const char *header_name; /* the alias it was asked for by; "TSV" for TabSeparated, as 26.7 says */
    const char *content_type;
};
struct output_info { /* what the JSON formats tell about the query */
    uint64_t rows_read, bytes_read, elapsed_ns;
    uint64_t rows_before_limit; /* 0: the statement had no LIMIT */
    const struct block *totals; /* of WITH TOTALS: one row, of the same columns; NULL without */
    /* Native only: above 0 each block has a block info, from 54454 on a byte follows each type. */
    uint64_t client_protocol_version;
};

/* By name or alias, ignoring case. Errors: UNKNOWN_FORMAT. */
must_use bool output_format_find(struct str name, const struct output_format **format, struct err *err);
const char *output_format_name(size_t index); /* every name and alias but TabSeparated; NULL behind the last */
/* Errors: TOO_MANY_ROWS_OR_BYTES when out meets its limit; Parquet: those of parquet_writer_add. */
must_use bool output_write(const struct output_format *format, const struct block *block,
                           const struct output_info *info, const struct format_settings *settings, struct strbuf *out,
                           struct err *err);
/* http_write_exception_in_output_format: the text of an error, with its newline, becomes a document that readers of the
 * format understand; of a format without a place for it, it stays as it is. */
void output_write_exception(const struct output_format *format, struct strbuf *text);
#endif
