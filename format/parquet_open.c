/* Opening a file: tail, footer, its checksum, the schema it was written with, and whether the file's own tree is the
 * one that follows from that schema. After that, only pages can still be wrong. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "format/parquet_index.h"

enum { MAGIC_BYTES = 4, TAIL_END_BYTES = 8, FILE_BYTES_MIN = 12 };
static const uint64_t memory_max_default = UINT64_C(1) << 30;

bool pq_file_read(struct parquet_file *file, uint64_t offset, void *out, size_t bytes, struct err *err)
{
    __atomic_fetch_add(&file->bytes_read, bytes, __ATOMIC_RELAXED);
    return bytes == 0 || file->read(file->context, offset, out, bytes, err);
}

static bool damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPTED_DATA, "Parquet file: %s", what);
}

/* ---- the tail ---- */

/* Where the footer lies, from the file's last bytes. */
static bool find_footer(struct parquet_file *file, const char *tail, size_t tail_bytes, uint32_t *footer_bytes,
                        struct err *err)
{
    const char *end = tail + tail_bytes - TAIL_END_BYTES;
    if (memcmp(end + 4, "PARE", MAGIC_BYTES) == 0)
        return err_set(err, ERR_NOT_IMPLEMENTED, "encrypted Parquet files cannot be read");
    if (memcmp(end + 4, "PAR1", MAGIC_BYTES) != 0)
        return damaged(err, "no magic at its end");
    if (tail_bytes == file->file_bytes && memcmp(tail, "PAR1", MAGIC_BYTES) != 0)
        return damaged(err, "no magic at its start");
    memcpy(footer_bytes, end, sizeof *footer_bytes);
    if (*footer_bytes == 0 || *footer_bytes > file->file_bytes - FILE_BYTES_MIN || *footer_bytes > PQ_FOOTER_BYTES_MAX)
        return damaged(err, "an impossible footer length");
    file->footer_offset = file->file_bytes - TAIL_END_BYTES - *footer_bytes;
    return true;
}

/* One read of the tail usually has it all; only the footer is kept. */
static bool read_footer(struct parquet_file *file, struct err *err)
{
    if (file->file_bytes < FILE_BYTES_MIN)
        return damaged(err, "too short to be one");
    size_t tail_bytes = (size_t)MIN(file->file_bytes, (uint64_t)PQ_TAIL_BYTES);
    char *tail = mem_alloc(tail_bytes);
    uint32_t footer_bytes = 0;
    bool ok = pq_file_read(file, file->file_bytes - tail_bytes, tail, tail_bytes, err) &&
              find_footer(file, tail, tail_bytes, &footer_bytes, err);
    if (ok) {
        char *footer = arena_alloc(file->arena, footer_bytes);
        file->footer = str_make(footer, footer_bytes);
        if (footer_bytes <= tail_bytes - TAIL_END_BYTES)
            memcpy(footer, tail + tail_bytes - TAIL_END_BYTES - footer_bytes, footer_bytes);
        else
            ok = pq_file_read(file, file->footer_offset, footer, footer_bytes, err);
    }
    free(tail);
    return ok;
}

/* ---- sluice.check ---- */

static bool hex16(struct str s, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < 16; i++) {
        char c = s.data[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 16;
        if (digit == 16)
            return false;
        *value = *value << 4 | digit;
    }
    return true;
}

/* The footer's own hash is of it with zeros in place of the digits. */
static bool check_footer(struct parquet_file *file, struct err *err)
{
    static const char zeros[PQ_CHECK_DIGITS + 1] = "00000000000000000000000000000000";
    struct str digits = parquet_metadata(file, STR("sluice.check"));
    uint64_t footer_hash;
    if (digits.len == 0)
        return true;
    if (digits.len != PQ_CHECK_DIGITS || !hex16(digits, &file->check_bytes) ||
        !hex16(str_from(digits, 16), &footer_hash))
        return damaged(err, "its sluice.check is not 32 hex digits");
    size_t at = (size_t)(digits.data - file->footer.data);
    struct hash64_stream *hash = hash64_stream_new();
    hash64_stream_add(hash, str_sub(file->footer, 0, at));
    hash64_stream_add(hash, str_make(zeros, PQ_CHECK_DIGITS));
    hash64_stream_add(hash, str_from(file->footer, at + PQ_CHECK_DIGITS));
    uint64_t found = hash64_stream_value(hash);
    hash64_stream_free(hash);
    file->checked = true;
    return found == footer_hash || damaged(err, "its footer does not match its checksum");
}

/* ---- sluice.schema ---- */

static struct str member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? str_make(json_string_value(value), json_string_length(value)) : STR_EMPTY;
}

static bool default_kind(struct str text, enum default_kind *kind)
{
    static const char *const names[] = { "", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (!str_is(text, names[i]))
            continue;
        *kind = (enum default_kind)i;
        return true;
    }
    return false;
}

static bool read_column(const json_t *json, struct arena *arena, struct schema_column *column, struct err *err)
{
    const json_t *id = json_object_get(json, "id");
    struct str type = member(json, "type");
    *column = (struct schema_column){ .name = arena_dup(arena, member(json, "name")),
                                      .default_text = arena_dup(arena, member(json, "default")) };
    if (column->name.len == 0 || type.len == 0 || !json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) > INT32_MAX || !default_kind(member(json, "default_kind"), &column->default_kind))
        return damaged(err, "a column of its sluice.schema is incomplete");
    column->field_id = (unsigned)json_integer_value(id);
    struct err why;
    if (!type_parse(arena_dup(arena, type), arena, &column->type, &why))
        return err_set(err, ERR_CORRUPTED_DATA, "Parquet file: type in its sluice.schema: %s", why.text);
    return true;
}

static bool read_columns(const json_t *json, struct parquet_file *file, struct err *err)
{
    const json_t *list = json_object_get(json, "columns"), *version = json_object_get(json, "version");
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count == 0 || !json_is_integer(version) || json_integer_value(version) < 0 ||
        json_integer_value(version) > INT32_MAX)
        return damaged(err, "its sluice.schema is incomplete");
    struct arena *arena = arena_new(4 << 10);
    struct schema_column *columns = ARENA_ARRAY(arena, struct schema_column, count);
    for (size_t i = 0; i < count; i++) {
        if (!read_column(json_array_get(list, i), arena, &columns[i], err)) {
            arena_free(arena);
            return false;
        }
    }
    file->schema = schema_new(arena, columns, count, (unsigned)json_integer_value(version));
    return true;
}

/* known: NULL, or what it will very likely be. */
static bool read_schema(struct parquet_file *file, const struct pq_known_schema *known, struct err *err)
{
    struct str text = parquet_metadata(file, STR("sluice.schema"));
    if (text.len == 0)
        return err_set(err, ERR_NOT_IMPLEMENTED, "Parquet file: not written by sluice (no sluice.schema)");
    if (!file->checked)
        return damaged(err, "its sluice.check is missing");
    if (!str_is(parquet_metadata(file, STR("sluice.format")), "1"))
        return err_set(err, ERR_NOT_IMPLEMENTED, "Parquet file: written by a newer sluice (sluice.format is not 1)");
    if (known != NULL && str_eq(text, known->text)) {
        file->schema = schema_ref(known->schema);
        file->profile = known->profile;
        return true;
    }
    json_error_t why;
    json_t *json = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &why);
    bool ok = false;
    if (json == NULL) {
        err_set(err, ERR_CORRUPTED_DATA, "Parquet file: sluice.schema: %s", why.text);
        goto done;
    }
    file->profile = str_is(member(json, "profile"), "native") ? PARQUET_NATIVE : PARQUET_LAKE;
    if (file->profile == PARQUET_LAKE && !str_is(member(json, "profile"), "lake"))
        damaged(err, "its sluice.schema names no known profile");
    else
        ok = read_columns(json, file, err);
done:
    json_decref(json);
    return ok;
}

/* ---- the tree ---- */

static bool same_element(const struct pq_element *found, const struct pq_element *made)
{
    if (!str_eq(found->name, made->name) || found->type != made->type || found->children != made->children)
        return false;
    if (made->type == PQ_FIXED && found->type_length != made->type_length)
        return false;
    if (made->repetition >= 0 && found->repetition != made->repetition)
        return false;
    /* A column with other bytes than UTF-8 goes without its STRING annotation. */
    bool bare = made->logical == PQ_LOGICAL_STRING && found->logical == PQ_LOGICAL_NONE && found->converted < 0;
    return bare || (found->logical == made->logical && found->converted == made->converted &&
                    found->logical_scale == made->logical_scale && found->unit == made->unit &&
                    found->logical_precision == made->logical_precision && found->bits == made->bits &&
                    found->is_signed == made->is_signed && found->utc == made->utc);
}

static bool check_tree(const struct parquet_file *file, struct err *err)
{
    const struct pq_schema *tree = &file->tree;
    if (tree->elements_count != file->meta.elements_count || tree->leaves_count != file->meta.leaves_count)
        return damaged(err, "its schema is not that of its sluice.schema");
    if (file->meta.groups_rows != file->meta.rows)
        return damaged(err, "row groups do not add up to the file's rows");
    for (size_t i = 0; i < tree->elements_count; i++)
        if (!same_element(&file->meta.elements[i], &tree->elements[i]))
            return err_set(err, ERR_CORRUPTED_DATA, "Parquet file: column " STR_FMT " is not that of its sluice.schema",
                           STR_ARG(file->meta.elements[i].name));
    return true;
}

static bool check_counts(const struct parquet_file *file, struct err *err)
{
    for (size_t g = 0; g < file->meta.groups_count; g++)
        for (size_t i = 0; i < file->tree.leaves_count; i++)
            if (file->tree.leaves[i].max_rep == 0 &&
                file->meta.groups[g].chunks[i].entries != file->meta.groups[g].rows)
                return err_set(err, ERR_CORRUPTED_DATA,
                               "Parquet file: row group %zu, column %zu: as many values as rows expected", g, i);
    return true;
}

static void read_stats(struct parquet_file *file)
{
    size_t columns = file->schema->columns_count;
    file->stats = ARENA_ARRAY(file->arena, struct parquet_stats, file->meta.groups_count * columns + 1);
    for (size_t g = 0; g < file->meta.groups_count; g++) {
        for (size_t i = 0; i < columns; i++) {
            size_t first = file->tree.column_leaf[i];
            const struct pq_leaf *leaf = &file->tree.leaves[first];
            const struct pq_meta_stats *found = &file->meta.groups[g].chunks[first].stats;
            struct parquet_stats *stats = &file->stats[g * columns + i];
            if (leaf->path_count > 0)
                continue;
            stats->nulls = found->nulls;
            stats->nulls_known = found->nulls_known && found->nulls <= (uint64_t)file->meta.groups[g].rows;
            stats->only_nulls = stats->nulls_known && found->nulls == (uint64_t)file->meta.groups[g].rows;
            stats->nans = found->nans;
            stats->nans_known = found->nans_known;
            if (found->known && file->meta.type_order != NULL && file->meta.type_order[first])
                pq_bounds_read(leaf, found->min, found->max, file->arena, stats);
        }
    }
}

/* ---- opening ---- */

static struct parquet_file *file_new(parquet_read_fn *read, void *context, uint64_t file_bytes)
{
    struct parquet_file *file = NEW(struct parquet_file);
    file->read = read;
    file->context = context;
    file->file_bytes = file_bytes;
    file->memory_max = memory_max_default;
    file->verify_checksums = true;
    file->arena = arena_new(4 << 10);
    return file;
}

static bool open_own(struct parquet_file *file, const struct pq_known_schema *known, struct err *err)
{
    if (!read_footer(file, err) || !pq_meta_parse(file->footer, file->footer_offset, file->arena, &file->meta, err) ||
        !check_footer(file, err) || !pq_index_sums_read(file, err) || !read_schema(file, known, err))
        return false;
    if (!pq_schema_build(file->schema, file->profile, file->arena, &file->tree, err))
        return err_set(err, ERR_CORRUPTED_DATA, "Parquet file: sluice.schema holds what cannot be stored");
    if (!check_tree(file, err) || !check_counts(file, err))
        return false;
    read_stats(file);
    return true;
}

static bool open_foreign(struct parquet_file *file, struct err *err)
{
    file->foreign = true;
    return read_footer(file, err) && pq_meta_parse(file->footer, file->footer_offset, file->arena, &file->meta, err) &&
           check_footer(file, err) && pq_index_sums_read(file, err) &&
           pq_schema_infer(file->meta.elements, file->meta.elements_count, file->arena, &file->schema, &file->tree,
                           err) &&
           check_counts(file, err);
}

static bool opened(struct parquet_file *file, bool ok, struct parquet_file **out)
{
    if (ok)
        *out = file;
    else
        parquet_close(file);
    return ok;
}

bool parquet_open(parquet_read_fn *read, void *context, uint64_t file_bytes, struct parquet_file **out, struct err *err)
{
    struct parquet_file *file = file_new(read, context, file_bytes);
    return opened(file, open_own(file, NULL, err), out);
}

bool parquet_open_written(parquet_read_fn *read, void *context, uint64_t file_bytes,
                          const struct parquet_writer *writer, struct parquet_file **out, struct err *err)
{
    struct parquet_file *file = file_new(read, context, file_bytes);
    struct pq_known_schema known = pq_writer_schema(writer);
    return opened(file, open_own(file, &known, err), out);
}

bool parquet_open_foreign(parquet_read_fn *read, void *context, uint64_t file_bytes, struct parquet_file **out,
                          struct err *err)
{
    struct parquet_file *file = file_new(read, context, file_bytes);
    return opened(file, open_foreign(file, err), out);
}

void parquet_close(struct parquet_file *file)
{
    if (file == NULL)
        return;
    schema_unref(file->schema);
    arena_free(file->arena);
    free(file);
}

struct schema *parquet_schema(const struct parquet_file *file)
{
    return file->schema;
}

enum parquet_profile parquet_profile(const struct parquet_file *file)
{
    return file->profile;
}

bool parquet_text_is(const struct parquet_file *file, size_t column, bool annotated)
{
    for (size_t i = file->tree.column_leaf[column]; i < file->tree.column_leaf[column + 1]; i++) {
        const struct pq_leaf *leaf = &file->tree.leaves[i];
        bool has = file->meta.elements[leaf->element].logical == PQ_LOGICAL_STRING;
        if (leaf->type->kind == TYPE_STRING && has != annotated)
            return false;
    }
    return true;
}

uint64_t parquet_rows(const struct parquet_file *file)
{
    return (uint64_t)file->meta.groups_rows;
}

size_t parquet_row_groups(const struct parquet_file *file)
{
    return file->meta.groups_count;
}

static uint64_t decoded_bytes(const struct pq_meta_chunk *chunk)
{
    enum { CELL_BYTES = 8, FIXED_BYTES = 32, EXPANSION = 8 }; /* the last: of strings that compress well */
    uint64_t entries = (uint64_t)MAX(chunk->entries, 0);
    if (chunk->physical == PQ_FIXED)
        return entries * FIXED_BYTES;
    uint64_t strings = chunk->physical != PQ_BYTE_ARRAY ? 0
                       : chunk->string_bytes >= 0       ? (uint64_t)chunk->string_bytes
                                                        : (uint64_t)MAX(chunk->uncompressed_bytes, 0) * EXPANSION;
    return entries * CELL_BYTES + strings;
}

struct parquet_row_group parquet_row_group(const struct parquet_file *file, size_t index)
{
    must(index < file->meta.groups_count);
    const struct pq_meta_group *group = &file->meta.groups[index];
    struct parquet_row_group out = { .rows = (uint64_t)group->rows };
    for (size_t i = 0; i < group->chunks_count; i++)
        out.bytes += (uint64_t)group->chunks[i].bytes;
    for (size_t i = 0; i < group->chunks_count; i++)
        out.decoded_bytes += decoded_bytes(&group->chunks[i]);
    return out;
}

struct str parquet_metadata(const struct parquet_file *file, struct str key)
{
    for (size_t i = 0; i < file->meta.kv_count; i++)
        if (str_eq(file->meta.kv[i].key, key))
            return file->meta.kv[i].value;
    return STR_EMPTY;
}

struct parquet_stats parquet_stats(const struct parquet_file *file, size_t row_group, size_t column)
{
    must(row_group < file->meta.groups_count && column < file->schema->columns_count);
    if (file->stats == NULL)
        return (struct parquet_stats){ 0 };
    return file->stats[row_group * file->schema->columns_count + column];
}

uint64_t parquet_bytes_read(const struct parquet_file *file)
{
    return __atomic_load_n(&file->bytes_read, __ATOMIC_RELAXED);
}

void parquet_set_memory_max(struct parquet_file *file, uint64_t bytes)
{
    file->memory_max = bytes;
}

void parquet_set_verify_checksums(struct parquet_file *file, bool verify)
{
    file->verify_checksums = verify;
}

void parquet_on_damaged_index(struct parquet_file *file, parquet_damage_fn *tell)
{
    file->tell_damage = tell;
}

/* ---- verify ---- */

bool parquet_verify_bytes(struct parquet_file *file, struct err *err)
{
    enum { PIECE_BYTES = 1 << 20 };
    char *piece = mem_alloc((size_t)MIN(file->footer_offset, (uint64_t)PIECE_BYTES));
    struct hash64_stream *hash = hash64_stream_new();
    bool ok = true;
    for (uint64_t at = 0; ok && at < file->footer_offset; at += PIECE_BYTES) {
        size_t bytes = (size_t)MIN(file->footer_offset - at, (uint64_t)PIECE_BYTES);
        ok = pq_file_read(file, at, piece, bytes, err);
        if (ok)
            hash64_stream_add(hash, str_make(piece, bytes));
    }
    if (ok && hash64_stream_value(hash) != file->check_bytes)
        ok = damaged(err, "its bytes do not match its checksum");
    hash64_stream_free(hash);
    free(piece);
    return ok;
}

bool parquet_verify(struct parquet_file *file, struct err *err)
{
    if (!parquet_verify_bytes(file, err))
        return false;
    for (size_t g = 0; g < file->meta.groups_count; g++) {
        for (size_t i = 0; i < file->schema->columns_count; i++) {
            struct column c;
            column_init(&c, file->schema->columns[i].type);
            bool ok = parquet_read_column(file, g, i, &c, err);
            column_fini(&c);
            if (!ok)
                return false;
        }
    }
    return true;
}
