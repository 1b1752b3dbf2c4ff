/* multipart.c: see multipart.h. A part: "--BOUNDARY\r\n" headers "\r\n\r\n" value "\r\n", the last delimiter ends "--".
 */
#include "gateway/multipart.h"

/* The value of name="..." or name=... in a header's parameters; data NULL when absent. */
static struct str parameter(struct str header, struct str name)
{
    struct str rest = header, piece;
    bool first = true;
    while (str_cut(&rest, ';', &piece)) {
        struct str key, value = piece;
        if (first) {
            first = false;
            continue;
        }
        if (!str_cut(&value, '=', &key) || !str_eq_nocase(str_trim(key), name))
            continue;
        value = str_trim(value);
        if (value.len >= 2 && value.data[0] == '"' && value.data[value.len - 1] == '"')
            value = str_sub(value, 1, value.len - 2);
        return value;
    }
    return (struct str){ NULL, 0 };
}

struct str multipart_boundary(struct str content_type)
{
    if (!str_starts_nocase(content_type, STR("multipart/form-data")))
        return STR_EMPTY;
    struct str boundary = parameter(content_type, STR("boundary"));
    return boundary.data == NULL || boundary.len > 200 ? STR_EMPTY : boundary;
}

/* Index of "--BOUNDARY" in s, or STR_NONE. */
static ptrdiff_t find_delimiter(struct str s, struct str boundary)
{
    size_t from = 0;
    for (;;) {
        ptrdiff_t at = str_find(str_from(s, from), boundary);
        if (at == STR_NONE)
            return STR_NONE;
        size_t found = from + (size_t)at;
        if (found >= 2 && s.data[found - 1] == '-' && s.data[found - 2] == '-')
            return (ptrdiff_t)(found - 2);
        from = found + 1;
    }
}

static void read_headers(struct str headers, struct multipart_field *field)
{
    struct str line;
    while (str_cut(&headers, '\n', &line)) {
        struct str name, value = line;
        if (!str_cut(&value, ':', &name) || !str_eq_nocase(str_trim(name), STR("Content-Disposition")))
            continue;
        value = str_trim(value);
        struct str field_name = parameter(value, STR("name"));
        field->name = field_name.data == NULL ? STR_EMPTY : field_name;
        field->file = parameter(value, STR("filename")).data != NULL;
    }
}

bool multipart_next(struct str boundary, struct str *rest, struct multipart_field *field, struct err *err)
{
    *field = (struct multipart_field){ STR_EMPTY, STR_EMPTY, false };
    err->code = ERR_OK;
    ptrdiff_t start = find_delimiter(*rest, boundary);
    if (start == STR_NONE)
        return err_set(err, ERR_CANNOT_PARSE_TEXT, "multipart/form-data: no boundary where one has to be");
    struct str part = str_from(*rest, (size_t)start + 2 + boundary.len);
    if (str_starts(part, STR("--")))
        return false;
    ptrdiff_t blank = str_find(part, STR("\r\n\r\n"));
    ptrdiff_t end = find_delimiter(part, boundary);
    if (blank == STR_NONE || end == STR_NONE || end < blank + 6)
        return err_set(err, ERR_CANNOT_PARSE_TEXT, "multipart/form-data: a part without end");
    read_headers(str_sub(part, 0, (size_t)blank), field);
    size_t from = (size_t)blank + 4;
    field->value = str_sub(part, from, (size_t)end - 2 - from); /* without the line end before the delimiter */
    *rest = str_from(part, (size_t)end);
    return true;
}
