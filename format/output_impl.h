/* output_impl.h: what the writers of output*.c share. */
#ifndef SLUICE_FORMAT_OUTPUT_IMPL_H
#define SLUICE_FORMAT_OUTPUT_IMPL_H
#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"
#include "format/output.h"
#include "format/text_value.h"

struct output {
    const struct block *block;
    const struct output_info *info;
    const struct format_settings *settings;
    struct strbuf *out;
    bool names, types; /* lines before the data */
    bool strings;      /* JSON: every value as a string */
    struct err *err;   /* of what could not be written */
    bool failed;
};
typedef void output_fn(struct output *o);

static inline void output_cell(const struct output *o, size_t column, size_t row, enum text_style style)
{
    text_value_print(&o->block->columns[column], row, style, o->settings, o->out);
}
/* The same for the row of WITH TOTALS, which has to be there. */
static inline struct output output_totals(const struct output *o)
{
    struct output totals = *o;
    totals.block = o->info->totals;
    return totals;
}
/* A text that is the value as toString() prints it, but ᴺᵁᴸᴸ for NULL. */
void output_plain(const struct output *o, size_t column, size_t row, struct strbuf *out);

/* Numbers and times stand on the right of what is for eyes. */
bool output_aligns_right(const struct type *type);

output_fn output_tsv, output_raw, output_csv, output_tskv, output_values, output_null, output_vertical, output_pretty,
    output_pretty_compact, output_pretty_space, output_json, output_json_compact, output_json_each_row,
    output_json_compact_each_row, output_json_columns, output_json_compact_columns, output_json_columns_metadata,
    output_json_object_each_row, output_json_each_row_progress, output_json_compact_each_row_progress, output_native,
    output_row_binary, output_parquet, output_custom, output_markdown, output_sql_insert, output_xml, output_arrow,
    output_arrow_stream;
#endif
