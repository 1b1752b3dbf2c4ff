/* Bloom filters, page indexes and FileMetaData of a file being written. Field ids are those of parquet.thrift. */
#include "format/parquet_footer.h"

#include "base/text.h"
#include "base/version.h"
#include "format/parquet_index.h"

/* ---- page indexes ---- */

enum { INDEX_ROWS_MIN = 8192 }; /* files below carry an index only for chunks of several pages */

static bool has_bounds(const struct pq_chunk *chunk)
{
    if (!chunk->bounds.known && chunk->nulls < chunk->entries)
        return false;
    for (size_t i = 0; i < chunk->pages_count; i++)
        if (!chunk->pages[i].bounds.known && chunk->pages[i].nulls < chunk->pages[i].entries)
            return false;
    return true;
}

enum boundary_order { UNORDERED, ASCENDING, DESCENDING };

static enum boundary_order boundary_order(const struct pq_leaf *leaf, const struct pq_chunk *chunk)
{
    const struct pq_bounds_text *before = NULL;
    bool up = true, down = true;
    for (size_t i = 0; i < chunk->pages_count; i++) {
        const struct pq_bounds_text *b = &chunk->pages[i].bounds;
        if (!b->known)
            continue;
        if (before != NULL) {
            int min = pq_plain_compare(leaf, before->min, b->min), max = pq_plain_compare(leaf, before->max, b->max);
            up = up && min <= 0 && max <= 0;
            down = down && min >= 0 && max >= 0;
        }
        before = b;
    }
    return up ? ASCENDING : down ? DESCENDING : UNORDERED;
}

static void write_histograms(struct thrift_writer *w, int id, const struct pq_chunk *chunk, bool def, unsigned max)
{
    thrift_list(w, id, THRIFT_I64, chunk->pages_count * (max + 1));
    for (size_t i = 0; i < chunk->pages_count; i++) {
        const uint64_t *counts = def ? chunk->pages[i].def_histogram : chunk->pages[i].rep_histogram;
        for (unsigned level = 0; level <= max; level++)
            thrift_item_i64(w, (int64_t)counts[level]);
    }
}

static void write_column_index(const struct pq_leaf *leaf, const struct pq_chunk *chunk, struct strbuf *out)
{
    struct thrift_writer w;
    thrift_begin(&w, out);
    thrift_list(&w, 1, THRIFT_TRUE, chunk->pages_count);
    for (size_t i = 0; i < chunk->pages_count; i++)
        thrift_item_bool(&w, !chunk->pages[i].bounds.known);
    thrift_list(&w, 2, THRIFT_BINARY, chunk->pages_count);
    for (size_t i = 0; i < chunk->pages_count; i++)
        thrift_item_binary(&w, chunk->pages[i].bounds.known ? chunk->pages[i].bounds.min : STR_EMPTY);
    thrift_list(&w, 3, THRIFT_BINARY, chunk->pages_count);
    for (size_t i = 0; i < chunk->pages_count; i++)
        thrift_item_binary(&w, chunk->pages[i].bounds.known ? chunk->pages[i].bounds.max : STR_EMPTY);
    thrift_i32(&w, 4, (int32_t)boundary_order(leaf, chunk));
    thrift_list(&w, 5, THRIFT_I64, chunk->pages_count);
    for (size_t i = 0; i < chunk->pages_count; i++)
        thrift_item_i64(&w, (int64_t)chunk->pages[i].nulls);
    if (leaf->max_rep > 0) {
        write_histograms(&w, 6, chunk, false, leaf->max_rep);
        write_histograms(&w, 7, chunk, true, leaf->max_def);
    }
    if (leaf->order == PQ_ORDER_FLOAT) {
        thrift_list(&w, 8, THRIFT_I64, chunk->pages_count);
        for (size_t i = 0; i < chunk->pages_count; i++)
            thrift_item_i64(&w, (int64_t)chunk->pages[i].nans);
    }
    thrift_end(&w);
}

static void write_offset_index(const struct pq_leaf *leaf, const struct pq_written_chunk *c, struct strbuf *out)
{
    const struct pq_chunk *chunk = &c->chunk;
    struct thrift_writer w;
    thrift_begin(&w, out);
    thrift_list(&w, 1, THRIFT_STRUCT, chunk->pages_count);
    for (size_t i = 0; i < chunk->pages_count; i++) {
        thrift_item_struct(&w);
        thrift_i64(&w, 1, (int64_t)(c->offset + chunk->pages[i].offset));
        thrift_i32(&w, 2, (int32_t)chunk->pages[i].bytes);
        thrift_i64(&w, 3, (int64_t)chunk->pages[i].first_row);
        thrift_end(&w);
    }
    if (leaf->physical == PQ_BYTE_ARRAY) {
        thrift_list(&w, 2, THRIFT_I64, chunk->pages_count);
        for (size_t i = 0; i < chunk->pages_count; i++)
            thrift_item_i64(&w, (int64_t)chunk->pages[i].string_bytes);
    }
    thrift_end(&w);
}

static bool is_copied(const struct pq_written_chunk *c)
{
    return c->copied.meta.len > 0;
}

/* A ColumnIndex needs an OffsetIndex, and readers need that of all other columns of the row group. */
static bool group_has_index(const struct pq_written_file *file, const struct pq_written_group *group)
{
    if (file->rows >= INDEX_ROWS_MIN)
        return true;
    for (size_t i = 0; i < file->tree->leaves_count; i++)
        if (group->chunks[i].chunk.pages_count > 1 || is_copied(&group->chunks[i]))
            return true;
    return false;
}

static void write_blooms(struct pq_written_file *file, uint64_t start, struct strbuf *out)
{
    for (size_t g = 0; g < file->groups_count; g++) {
        for (size_t i = 0; i < file->tree->leaves_count; i++) {
            struct pq_written_chunk *c = &file->groups[g].chunks[i];
            c->bloom_offset = start + out->len;
            strbuf_add(out, c->chunk.bloom);
        }
    }
}

static struct str written(struct str out, uint64_t start, uint64_t offset, size_t bytes)
{
    return bytes == 0 ? STR_EMPTY : str_sub(out, (size_t)(offset - start), bytes);
}

static void sum_indexes(struct pq_written_file *file, uint64_t start, struct str out)
{
    struct strbuf sums = { 0 };
    bool any = false;
    for (size_t g = 0; g < file->groups_count; g++) {
        for (size_t i = 0; i < file->tree->leaves_count; i++) {
            const struct pq_written_chunk *c = &file->groups[g].chunks[i];
            struct str column_index = written(out, start, c->column_index_offset, c->column_index_bytes);
            struct str offset_index = written(out, start, c->offset_index_offset, c->offset_index_bytes);
            pq_index_sums_add(column_index, offset_index, c->chunk.bloom, &sums);
            any = any || column_index.len + offset_index.len + c->chunk.bloom.len > 0;
        }
    }
    if (any)
        text_add_base64(&file->index_sums, strbuf_view(&sums));
    strbuf_fini(&sums);
}

static void write_page_indexes(struct pq_written_file *file, uint64_t start, struct strbuf *out)
{
    for (size_t g = 0; g < file->groups_count; g++) {
        for (size_t i = 0; group_has_index(file, &file->groups[g]) && i < file->tree->leaves_count; i++) {
            struct pq_written_chunk *c = &file->groups[g].chunks[i];
            size_t at = out->len;
            if (is_copied(c))
                strbuf_add(out, c->copied.column_index);
            else if (has_bounds(&c->chunk))
                write_column_index(&file->tree->leaves[i], &c->chunk, out);
            c->column_index_offset = start + at;
            c->column_index_bytes = (uint32_t)(out->len - at);
        }
    }
    for (size_t g = 0; g < file->groups_count; g++) {
        for (size_t i = 0; group_has_index(file, &file->groups[g]) && i < file->tree->leaves_count; i++) {
            struct pq_written_chunk *c = &file->groups[g].chunks[i];
            size_t at = out->len;
            if (is_copied(c))
                pq_copied_offset_index_write(&c->copied, out);
            else
                write_offset_index(&file->tree->leaves[i], c, out);
            c->offset_index_offset = start + at;
            c->offset_index_bytes = (uint32_t)(out->len - at);
        }
    }
}

void pq_indexes_write(struct pq_written_file *file, uint64_t start, struct strbuf *out)
{
    write_blooms(file, start, out);
    write_page_indexes(file, start, out);
    sum_indexes(file, start, strbuf_view(out));
}

/* ---- schema ---- */

static void write_logical(struct thrift_writer *w, const struct pq_element *e)
{
    thrift_struct(w, 10);
    thrift_struct(w, e->logical);
    switch (e->logical) {
    case PQ_LOGICAL_DECIMAL:
        thrift_i32(w, 1, e->logical_scale);
        thrift_i32(w, 2, e->logical_precision);
        break;
    case PQ_LOGICAL_TIMESTAMP:
        thrift_bool(w, 1, e->utc);
        thrift_struct(w, 2);
        thrift_empty_struct(w, e->unit);
        thrift_end(w);
        break;
    case PQ_LOGICAL_INTEGER:
        thrift_i8(w, 1, (int8_t)e->bits);
        thrift_bool(w, 2, e->is_signed);
        break;
    default:
        break;
    }
    thrift_end(w);
    thrift_end(w);
}

static void write_element(struct thrift_writer *w, const struct pq_element *e, bool annotated)
{
    const struct {
        int id;
        int32_t value;
    } fields[] = { { 1, e->type }, { 2, e->type_length }, { 3, e->repetition } },
      rest[] = { { 5, e->children },
                 { 6, annotated ? e->converted : -1 },
                 { 7, e->scale },
                 { 8, e->precision },
                 { 9, e->field_id } };
    thrift_item_struct(w);
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++)
        if (fields[i].value >= 0)
            thrift_i32(w, fields[i].id, fields[i].value);
    thrift_binary(w, 4, e->name);
    for (size_t i = 0; i < ARRAY_COUNT(rest); i++)
        if (rest[i].value >= 0)
            thrift_i32(w, rest[i].id, rest[i].value);
    if (annotated && e->logical != PQ_LOGICAL_NONE)
        write_logical(w, e);
    thrift_end(w);
}

static void write_schema(struct thrift_writer *w, const struct pq_written_file *file)
{
    const struct pq_schema *tree = file->tree;
    size_t leaf = 0;
    thrift_list(w, 2, THRIFT_STRUCT, tree->elements_count);
    for (size_t i = 0; i < tree->elements_count; i++) {
        bool is_leaf = leaf < tree->leaves_count && tree->leaves[leaf].element == i;
        write_element(w, &tree->elements[i], !is_leaf || !file->bad_utf8[leaf]);
        leaf += is_leaf;
    }
}

/* ---- row groups ---- */

static void write_encodings(struct thrift_writer *w, const struct pq_leaf *leaf, const struct pq_chunk *chunk)
{
    bool used[PQ_ENCODINGS] = { [PQ_PLAIN] = chunk->dictionary, [PQ_RLE] = leaf->max_def > 0 };
    size_t count = 0;
    for (size_t i = 0; i < PQ_ENCODINGS; i++) {
        used[i] = used[i] || chunk->data_pages[i] > 0;
        count += used[i];
    }
    thrift_list(w, 2, THRIFT_I32, count);
    for (size_t i = 0; i < PQ_ENCODINGS; i++)
        if (used[i])
            thrift_item_i32(w, (int32_t)i);
}

static void write_encoding_stat(struct thrift_writer *w, enum pq_page_type type, size_t encoding, uint32_t count)
{
    thrift_item_struct(w);
    thrift_i32(w, 1, (int32_t)type);
    thrift_i32(w, 2, (int32_t)encoding);
    thrift_i32(w, 3, (int32_t)count);
    thrift_end(w);
}

static void write_encoding_stats(struct thrift_writer *w, const struct pq_chunk *chunk)
{
    size_t count = chunk->dictionary;
    for (size_t i = 0; i < PQ_ENCODINGS; i++)
        count += chunk->data_pages[i] > 0;
    thrift_list(w, 13, THRIFT_STRUCT, count);
    if (chunk->dictionary)
        write_encoding_stat(w, PQ_DICTIONARY_PAGE, PQ_PLAIN, 1);
    for (size_t i = 0; i < PQ_ENCODINGS; i++)
        if (chunk->data_pages[i] > 0)
            write_encoding_stat(w, PQ_DATA_PAGE, i, chunk->data_pages[i]);
}

static void write_counts(struct thrift_writer *w, int id, const uint64_t *counts, unsigned max)
{
    thrift_list(w, id, THRIFT_I64, max + 1);
    for (unsigned level = 0; level <= max; level++)
        thrift_item_i64(w, (int64_t)counts[level]);
}

static void write_size_statistics(struct thrift_writer *w, const struct pq_leaf *leaf, const struct pq_chunk *chunk)
{
    if (leaf->physical != PQ_BYTE_ARRAY && leaf->max_rep == 0)
        return;
    thrift_struct(w, 16);
    if (leaf->physical == PQ_BYTE_ARRAY)
        thrift_i64(w, 1, (int64_t)chunk->string_bytes);
    if (leaf->max_rep > 0) {
        write_counts(w, 2, chunk->rep_histogram, leaf->max_rep);
        write_counts(w, 3, chunk->def_histogram, leaf->max_def);
    }
    thrift_end(w);
}

static void write_column_meta(struct thrift_writer *w, const struct pq_leaf *leaf, const struct pq_written_chunk *c)
{
    const struct pq_chunk *chunk = &c->chunk;
    thrift_i32(w, 1, (int32_t)leaf->physical);
    write_encodings(w, leaf, chunk);
    thrift_list(w, 3, THRIFT_BINARY, leaf->names_count);
    for (size_t i = 0; i < leaf->names_count; i++)
        thrift_item_binary(w, leaf->names[i]);
    thrift_i32(w, 4, (int32_t)chunk->codec);
    thrift_i64(w, 5, (int64_t)chunk->entries);
    thrift_i64(w, 6, (int64_t)chunk->uncompressed_bytes);
    thrift_i64(w, 7, (int64_t)chunk->bytes);
    thrift_i64(w, 9, (int64_t)(c->offset + chunk->data_offset));
    if (chunk->dictionary)
        thrift_i64(w, 11, (int64_t)c->offset);
    pq_statistics_write(w, 12, leaf, &chunk->bounds, chunk->nulls, chunk->distinct, chunk->nans);
    write_encoding_stats(w, chunk);
    if (chunk->bloom.len > 0) {
        thrift_i64(w, 14, (int64_t)c->bloom_offset);
        thrift_i32(w, 15, (int32_t)chunk->bloom.len);
    }
    write_size_statistics(w, leaf, chunk);
}

static void write_chunk(struct thrift_writer *w, const struct pq_leaf *leaf, const struct pq_written_chunk *c)
{
    thrift_item_struct(w);
    thrift_i64(w, 2, 0);
    thrift_struct(w, 3);
    if (is_copied(c))
        pq_copied_meta_write(&c->copied, c->bloom_offset, w);
    else
        write_column_meta(w, leaf, c);
    thrift_end(w);
    if (c->offset_index_bytes > 0) {
        thrift_i64(w, 4, (int64_t)c->offset_index_offset);
        thrift_i32(w, 5, (int32_t)c->offset_index_bytes);
    }
    if (c->column_index_bytes > 0) {
        thrift_i64(w, 6, (int64_t)c->column_index_offset);
        thrift_i32(w, 7, (int32_t)c->column_index_bytes);
    }
    thrift_end(w);
}

/* The leading sort columns that are one leaf each, in the order that readers know for its annotation. Enums are sorted
 * by number and stored by name; texts of numbers and addresses do not sort like these; UUIDs sort by their halves. */
static size_t sorting_leaves(const struct pq_written_file *file, size_t *leaves, size_t max)
{
    size_t count = 0;
    for (; count < file->options->sort_columns_count && count < max; count++) {
        size_t column = file->options->sort_columns[count], first = file->tree->column_leaf[column];
        const struct pq_leaf *leaf = &file->tree->leaves[first];
        if (leaf->path_count > 0 || leaf->convert == PQ_ENUM_NAME || leaf->convert == PQ_TEXT ||
            leaf->type->kind == TYPE_UUID)
            break;
        leaves[count] = first;
    }
    return count;
}

static void write_sorting(struct thrift_writer *w, const struct pq_written_file *file)
{
    enum { SORTING_MAX = 16 };
    size_t leaves[SORTING_MAX], count = sorting_leaves(file, leaves, SORTING_MAX);
    if (count == 0)
        return;
    thrift_list(w, 4, THRIFT_STRUCT, count);
    for (size_t i = 0; i < count; i++) {
        thrift_item_struct(w);
        thrift_i32(w, 1, (int32_t)leaves[i]);
        thrift_bool(w, 2, false);
        thrift_bool(w, 3, false);
        thrift_end(w);
    }
}

static void write_group(struct thrift_writer *w, const struct pq_written_file *file, size_t index)
{
    const struct pq_written_group *group = &file->groups[index];
    uint64_t uncompressed = 0, bytes = 0;
    thrift_item_struct(w);
    thrift_list(w, 1, THRIFT_STRUCT, file->tree->leaves_count);
    for (size_t i = 0; i < file->tree->leaves_count; i++) {
        write_chunk(w, &file->tree->leaves[i], &group->chunks[i]);
        uncompressed += group->chunks[i].chunk.uncompressed_bytes;
        bytes += group->chunks[i].chunk.bytes;
    }
    thrift_i64(w, 2, (int64_t)uncompressed);
    thrift_i64(w, 3, (int64_t)group->rows);
    write_sorting(w, file);
    thrift_i64(w, 5, (int64_t)group->offset);
    thrift_i64(w, 6, (int64_t)bytes);
    if (index <= INT16_MAX)
        thrift_i16(w, 7, (int16_t)index);
    thrift_end(w);
}

/* ---- key-value metadata ---- */

static const char *const default_kinds[] = { "", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL" };

static void add_member(struct strbuf *json, const char *name, struct str text)
{
    strbuf_addf(json, ",\"%s\":", name);
    text_add_json_quoted(json, text);
}

void pq_schema_json(const struct schema *schema, enum parquet_profile profile, struct strbuf *json)
{
    static const char *const profiles[] = {
        [PARQUET_LAKE] = "lake", [PARQUET_NATIVE] = "native", [PARQUET_ANSWER] = "answer"
    };
    strbuf_addf(json, "{\"profile\":\"%s\",\"version\":%u,\"columns\":[", profiles[profile], schema->version);
    for (size_t i = 0; i < schema->columns_count; i++) {
        const struct schema_column *c = &schema->columns[i];
        strbuf_add_text(json, i == 0 ? "{\"name\":" : ",{\"name\":");
        text_add_json_quoted(json, c->name);
        add_member(json, "type", c->type->text);
        strbuf_addf(json, ",\"id\":%u", c->field_id);
        if (c->default_kind != DEFAULT_NONE) {
            add_member(json, "default_kind", str_of(default_kinds[c->default_kind]));
            add_member(json, "default", c->default_text);
        }
        strbuf_add_char(json, '}');
    }
    strbuf_add_text(json, "]}");
}

static void write_kv(struct thrift_writer *w, struct str key, struct str value)
{
    thrift_item_struct(w);
    thrift_binary(w, 1, key);
    thrift_binary(w, 2, value);
    thrift_end(w);
}

static size_t write_metadata(struct thrift_writer *w, const struct pq_written_file *file, const struct parquet_kv *kv,
                             size_t kv_count)
{
    bool summed = file->index_sums.len > 0;
    thrift_list(w, 5, THRIFT_STRUCT, kv_count + summed + 3);
    for (size_t i = 0; i < kv_count; i++)
        write_kv(w, kv[i].key, kv[i].value);
    if (summed)
        write_kv(w, STR("sluice.indexes"), strbuf_view(&file->index_sums));
    write_kv(w, STR("sluice.schema"), file->schema_text);
    write_kv(w, STR("sluice.format"), STR("1"));
    write_kv(w, STR("sluice.check"), STR("00000000000000000000000000000000"));
    return w->out->len - PQ_CHECK_DIGITS - 1; /* the struct's end follows the digits */
}

void pq_footer_write(const struct pq_written_file *file, const struct parquet_kv *kv, size_t kv_count,
                     struct strbuf *out, size_t *check_at)
{
    struct thrift_writer w;
    thrift_begin(&w, out);
    thrift_i32(&w, 1, 1);
    write_schema(&w, file);
    thrift_i64(&w, 3, (int64_t)file->rows);
    thrift_list(&w, 4, THRIFT_STRUCT, file->groups_count);
    for (size_t i = 0; i < file->groups_count; i++)
        write_group(&w, file, i);
    *check_at = write_metadata(&w, file, kv, kv_count);
    thrift_binary(&w, 6, STR("sluice version " SLUICE_VERSION " (build " SLUICE_BUILD ")"));
    thrift_list(&w, 7, THRIFT_STRUCT, file->tree->leaves_count);
    for (size_t i = 0; i < file->tree->leaves_count; i++) {
        thrift_item_struct(&w);
        thrift_empty_struct(&w, 1);
        thrift_end(&w);
    }
    thrift_end(&w);
}
