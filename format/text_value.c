/* text_value.c: one value that is a whole text. */
#include "format/text_value.h"

#include "format/text_read.h"

bool text_value_parse(struct str text, enum text_style style, const struct format_settings *settings, struct column *c,
                      struct err *err)
{
    static text_read_fn *const readers[] = {
        [TEXT_ESCAPED] = text_read_escaped, [TEXT_RAW] = text_read_raw,   [TEXT_QUOTED] = text_read_quoted,
        [TEXT_CSV] = text_read_csv,         [TEXT_JSON] = text_read_json, [TEXT_PLAIN] = text_read_whole,
    };
    struct text_reader r;
    size_t rows = c->rows;
    bool ok = false;
    if (style == TEXT_CSV && settings->format_csv_delimiter.len != 1)
        return err_set(err, ERR_BAD_ARGUMENTS, "format_csv_delimiter has to be exactly one character");
    if (!text_reader_init(&r, text, settings, 0, err))
        goto done;
    r.cut_out = style == TEXT_PLAIN;
    ok = readers[style](&r, c);
    if (ok && !text_eof(&r))
        ok = text_fail_at(&r, ERR_UNEXPECTED_DATA_AFTER_PARSED_VALUE, r.at, 20,
                          "Unexpected data '%s' after parsed value");
done:
    if (!ok)
        column_truncate(c, rows);
    text_reader_fini(&r);
    return ok;
}
