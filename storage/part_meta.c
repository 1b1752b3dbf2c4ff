/* part_meta.c: what a part's footer says about the part: printed when it is written, read and checked when it is
 * opened. The JSON is our own, so the reader takes one flat object of strings and whole numbers and nothing else. */
#include <stdlib.h>

#include "base/text.h"
#include "storage/part.h"

void part_meta_fini(struct part_meta *meta)
{
    partition_key_fini(&meta->partition);
    free(meta->tokens);
    ranges_fini(&meta->spooled);
    *meta = (struct part_meta){ 0 };
}

void part_meta_text_fini(struct part_meta_text *text)
{
    strbuf_fini(&text->part);
    strbuf_fini(&text->flush);
    strbuf_fini(&text->tokens);
    strbuf_fini(&text->contents);
    strbuf_fini(&text->spool);
}

/* ---- printing ---- */

static void add_hash(struct strbuf *out, struct hash128 hash)
{
    strbuf_addf(out, "\"%016llx%016llx\"", (unsigned long long)hash.hi, (unsigned long long)hash.lo);
}

static void add_partition(struct strbuf *out, const struct partition_key *key)
{
    struct str text = str_of(key->text);
    strbuf_add_text(out, ",\"partition_id\":");
    text_add_json_quoted(out, str_of(key->id));
    strbuf_add_text(out, ",\"dir\":");
    text_add_json_quoted(out, str_of(key->dir));
    if (text_is_utf8(text)) {
        strbuf_add_text(out, ",\"partition\":");
        text_add_json_quoted(out, text);
    } else {
        strbuf_add_text(out, ",\"partition_hex\":\"");
        text_add_hex(out, text);
        strbuf_add_char(out, '"');
    }
}

static void add_tokens(struct strbuf *out, const struct part_meta *meta, enum dedup_kind kind)
{
    struct strbuf bytes = { 0 };
    for (size_t i = 0; i < meta->tokens_count; i++)
        if (meta->tokens[i].kind == kind)
            strbuf_add_bytes(&bytes, &meta->tokens[i].identity, sizeof meta->tokens[i].identity);
    if (bytes.len > 0)
        text_add_base64(out, strbuf_view(&bytes));
    strbuf_fini(&bytes);
}

static void add_spooled(struct strbuf *out, const struct part_meta *meta)
{
    struct strbuf bytes = { 0 };
    if (meta->spooled.count == 0)
        return;
    ranges_print(&meta->spooled, &bytes);
    strbuf_addf(out, "%016llx:", (unsigned long long)meta->spool_id);
    text_add_base64(out, strbuf_view(&bytes));
    strbuf_fini(&bytes);
}

void part_meta_print(const struct part_meta *meta, struct part_meta_text *text)
{
    *text = (struct part_meta_text){ 0 };
    struct strbuf *out = &text->part;
    strbuf_addf(out, "{\"table\":\"%s\"", meta->table_uuid);
    add_partition(out, &meta->partition);
    strbuf_addf(out, ",\"min_block\":%llu,\"max_block\":%llu,\"level\":%u,\"mutation\":0,\"random\":\"%016llx\"",
                (unsigned long long)meta->name.first, (unsigned long long)meta->name.last, meta->name.level,
                (unsigned long long)meta->name.random);
    strbuf_addf(out, ",\"schema_version\":%u,\"rows\":%llu,\"row_hash_sum\":", meta->schema_version,
                (unsigned long long)meta->rows);
    add_hash(out, meta->row_hash_sum);
    strbuf_addf(out, ",\"created_ns\":%lld", (long long)meta->created_wall_ns);
    if (meta->newest_wall_ns != meta->created_wall_ns)
        strbuf_addf(out, ",\"newest_ns\":%lld", (long long)meta->newest_wall_ns);
    strbuf_add_char(out, '}');
    if (meta->flush_count > 0) {
        strbuf_add_text(&text->flush, "{\"id\":");
        add_hash(&text->flush, meta->flush_id);
        strbuf_addf(&text->flush, ",\"part\":%u,\"parts\":%u}", meta->flush_index, meta->flush_count);
    }
    add_tokens(&text->tokens, meta, DEDUP_TOKEN);
    add_tokens(&text->contents, meta, DEDUP_CONTENT);
    add_spooled(&text->spool, meta);
}

/* ---- reading ---- */

enum { FIELDS_MAX = 24, FIELD_NAME_MAX = 32 };
struct field {
    char name[FIELD_NAME_MAX];
    struct strbuf text; /* a string unescaped, or the digits of a number */
    bool is_string;
};
struct fields {
    struct field list[FIELDS_MAX];
    size_t count;
};

static void fields_fini(struct fields *fields)
{
    for (size_t i = 0; i < fields->count; i++)
        strbuf_fini(&fields->list[i].text);
    fields->count = 0;
}

static bool take(struct str *rest, char c)
{
    if (rest->len == 0 || rest->data[0] != c)
        return false;
    *rest = str_from(*rest, 1);
    return true;
}

static bool take_unicode(struct str *rest, struct strbuf *out)
{
    uint32_t code = 0;
    if (rest->len < 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        char c = rest->data[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        code = code * 16 + digit;
    }
    *rest = str_from(*rest, 4);
    char bytes[4];
    strbuf_add_bytes(out, bytes, text_put_utf8(bytes, code));
    return true;
}

static bool take_string(struct str *rest, struct strbuf *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (!take(rest, '"'))
        return false;
    while (rest->len > 0) {
        char c = rest->data[0];
        *rest = str_from(*rest, 1);
        if (c == '"')
            return true;
        if (c != '\\') {
            strbuf_add_char(out, c);
            continue;
        }
        if (rest->len == 0)
            return false;
        c = rest->data[0];
        *rest = str_from(*rest, 1);
        const char *found = c == 0 ? NULL : strchr(from, c);
        if (found != NULL)
            strbuf_add_char(out, to[found - from]);
        else if (c != 'u' || !take_unicode(rest, out))
            return false;
    }
    return false;
}

static bool take_number(struct str *rest, struct strbuf *out)
{
    size_t len = rest->len > 0 && rest->data[0] == '-' ? 1 : 0;
    while (len < rest->len && rest->data[len] >= '0' && rest->data[len] <= '9')
        len++;
    strbuf_add(out, str_sub(*rest, 0, len));
    *rest = str_from(*rest, len);
    return len > 0;
}

static bool take_field(struct str *rest, struct fields *fields)
{
    if (fields->count == FIELDS_MAX)
        return false;
    struct field *field = &fields->list[fields->count++];
    *field = (struct field){ 0 };
    struct strbuf name = { 0 };
    bool ok = take_string(rest, &name) && name.len > 0 && name.len < FIELD_NAME_MAX && take(rest, ':');
    if (ok)
        memcpy(field->name, name.data, name.len);
    strbuf_fini(&name);
    if (!ok)
        return false;
    field->is_string = rest->len > 0 && rest->data[0] == '"';
    return field->is_string ? take_string(rest, &field->text) : take_number(rest, &field->text);
}

static bool fields_parse(struct str json, struct fields *fields)
{
    fields->count = 0;
    if (!take(&json, '{'))
        return false;
    do {
        if (!take_field(&json, fields))
            return false;
    } while (take(&json, ','));
    return take(&json, '}') && json.len == 0;
}

static const struct field *field_find(const struct fields *fields, const char *name, bool is_string)
{
    for (size_t i = 0; i < fields->count; i++)
        if (strcmp(fields->list[i].name, name) == 0)
            return fields->list[i].is_string == is_string ? &fields->list[i] : NULL;
    return NULL;
}

static bool field_u64(const struct fields *fields, const char *name, uint64_t *out)
{
    const struct field *field = field_find(fields, name, false);
    return field != NULL && str_to_u64(strbuf_view(&field->text), out);
}

static bool field_unsigned(const struct fields *fields, const char *name, unsigned *out)
{
    uint64_t value = 0;
    if (!field_u64(fields, name, &value) || value > UINT32_MAX)
        return false;
    *out = (unsigned)value;
    return true;
}

static bool hex_to_u64(struct str hex, uint64_t *out)
{
    struct strbuf bytes = { 0 };
    bool ok = hex.len == 16 && text_from_hex(hex, &bytes) && bytes.len == 8;
    if (ok) {
        *out = 0;
        for (size_t i = 0; i < 8; i++)
            *out = *out << 8 | (unsigned char)bytes.data[i];
    }
    strbuf_fini(&bytes);
    return ok;
}

static bool field_hash(const struct fields *fields, const char *name, struct hash128 *out)
{
    const struct field *field = field_find(fields, name, true);
    if (field == NULL || field->text.len != 32)
        return false;
    struct str hex = strbuf_view(&field->text);
    return hex_to_u64(str_sub(hex, 0, 16), &out->hi) && hex_to_u64(str_from(hex, 16), &out->lo);
}

/* Copies a string field without NUL bytes into a buffer. */
static bool field_copy(const struct fields *fields, const char *name, char *out, size_t bytes)
{
    const struct field *field = field_find(fields, name, true);
    if (field == NULL || field->text.len >= bytes || str_find_char(strbuf_view(&field->text), 0) != STR_NONE)
        return false;
    memcpy(out, strbuf_cstr(&field->text), field->text.len + 1);
    return true;
}

static bool read_partition(const struct fields *fields, struct partition_key *key)
{
    char dir[256];
    if (!field_copy(fields, "partition_id", key->id, sizeof key->id) || key->id[0] == 0 ||
        !field_copy(fields, "dir", dir, sizeof dir) || dir[0] == 0)
        return false;
    const struct field *text = field_find(fields, "partition", true);
    const struct field *hex = field_find(fields, "partition_hex", true);
    struct strbuf bytes = { 0 };
    if (text != NULL)
        strbuf_add(&bytes, strbuf_view(&text->text));
    else if (hex == NULL || !text_from_hex(strbuf_view(&hex->text), &bytes)) {
        strbuf_fini(&bytes);
        return false;
    }
    key->dir = mem_strdup(dir);
    key->text = mem_strdup(strbuf_cstr(&bytes));
    strbuf_fini(&bytes);
    return true;
}

static bool read_part(const struct fields *fields, struct part_meta *meta)
{
    const struct field *random = field_find(fields, "random", true);
    const struct field *created = field_find(fields, "created_ns", false);
    unsigned level = 0;
    if (!field_copy(fields, "table", meta->table_uuid, sizeof meta->table_uuid) ||
        !read_partition(fields, &meta->partition) || !field_u64(fields, "min_block", &meta->name.first) ||
        !field_u64(fields, "max_block", &meta->name.last) || !field_unsigned(fields, "level", &level) ||
        random == NULL || !hex_to_u64(strbuf_view(&random->text), &meta->name.random) ||
        !field_unsigned(fields, "schema_version", &meta->schema_version) || !field_u64(fields, "rows", &meta->rows) ||
        !field_hash(fields, "row_hash_sum", &meta->row_hash_sum) || created == NULL ||
        !str_to_i64(strbuf_view(&created->text), &meta->created_wall_ns))
        return false;
    const struct field *newest = field_find(fields, "newest_ns", false);
    meta->newest_wall_ns = meta->created_wall_ns;
    if (newest != NULL && !str_to_i64(strbuf_view(&newest->text), &meta->newest_wall_ns))
        return false;
    meta->name.level = level;
    return meta->name.first >= 1 && meta->name.first <= meta->name.last;
}

static bool read_flush(const struct fields *fields, struct part_meta *meta)
{
    return field_hash(fields, "id", &meta->flush_id) && field_unsigned(fields, "part", &meta->flush_index) &&
           field_unsigned(fields, "parts", &meta->flush_count) && meta->flush_index < meta->flush_count &&
           meta->name.first > meta->flush_index && meta->name.first == meta->name.last;
}

static bool read_tokens(struct str base64, enum dedup_kind kind, struct part_meta *meta)
{
    struct strbuf bytes = { 0 };
    bool ok = base64.len == 0 || (text_from_base64(base64, &bytes) && bytes.len % sizeof(struct hash128) == 0);
    size_t count = ok ? bytes.len / sizeof(struct hash128) : 0;
    if (count > 0)
        meta->tokens = mem_realloc(meta->tokens, (meta->tokens_count + count) * sizeof *meta->tokens);
    for (size_t i = 0; i < count; i++) {
        struct part_token *token = &meta->tokens[meta->tokens_count++];
        *token = (struct part_token){ .wall_ns = meta->created_wall_ns, .kind = kind };
        memcpy(&token->identity, bytes.data + i * sizeof token->identity, sizeof token->identity);
    }
    strbuf_fini(&bytes);
    return ok;
}

static bool read_spooled(struct str text, struct part_meta *meta)
{
    struct strbuf bytes = { 0 };
    if (text.len == 0)
        return true;
    bool ok = text.len > 17 && text.data[16] == ':' && hex_to_u64(str_sub(text, 0, 16), &meta->spool_id) &&
              text_from_base64(str_from(text, 17), &bytes) && ranges_parse(strbuf_view(&bytes), &meta->spooled);
    strbuf_fini(&bytes);
    return ok;
}

bool part_meta_parse(struct str part, struct str flush, struct str tokens, struct str contents, struct str spool,
                     struct part_meta *meta, struct err *err)
{
    *meta = (struct part_meta){ 0 };
    struct fields fields = { 0 };
    const char *bad = NULL;
    if (!fields_parse(part, &fields) || !read_part(&fields, meta))
        bad = "sluice.part";
    fields_fini(&fields);
    if (bad == NULL && flush.len > 0 && (!fields_parse(flush, &fields) || !read_flush(&fields, meta)))
        bad = "sluice.flush";
    fields_fini(&fields);
    if (bad == NULL && !read_tokens(tokens, DEDUP_TOKEN, meta))
        bad = "sluice.tokens";
    if (bad == NULL && !read_tokens(contents, DEDUP_CONTENT, meta))
        bad = "sluice.contents";
    if (bad == NULL && !read_spooled(spool, meta))
        bad = "sluice.spool";
    if (bad == NULL)
        return true;
    part_meta_fini(meta);
    return err_set(err, ERR_CORRUPTED_DATA, "footer value %s is missing or malformed", bad);
}
