/* Parses FileMetaData and page headers. Every number of the file is checked before it is used as a size, an offset or
 * an index; memory is charged against a budget that grows with the footer. */
#include "format/parquet_meta.h"

#include "base/text.h"

struct parser {
    struct thrift_reader r;
    struct arena *arena;
    size_t budget;
    bool encrypted;
};

enum { BUDGET_FACTOR = 8, BUDGET_BASE = 1 << 20 };

/* Zeroed room for a list's elements; NULL (and a noted error) over the budget. */
static void *list_room(struct parser *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > p->budget) {
        thrift_fail(&p->r, "takes too much memory");
        return NULL;
    }
    p->budget -= bytes;
    return arena_zalloc(p->arena, bytes + 1);
}

/* ---- schema ---- */

static void parse_unit(struct parser *p, struct pq_element *e)
{
    struct thrift_field f;
    while (thrift_next(&p->r, &f)) {
        e->unit = f.id;
        thrift_skip(&p->r, f);
    }
}

static void parse_logical_fields(struct parser *p, struct pq_element *e)
{
    struct thrift_field f;
    while (thrift_next(&p->r, &f)) {
        switch (f.id < 16 ? e->logical * 16 + f.id : 0) {
        case PQ_LOGICAL_DECIMAL * 16 + 1:
            e->logical_scale = thrift_get_i32(&p->r, f);
            break;
        case PQ_LOGICAL_DECIMAL * 16 + 2:
            e->logical_precision = thrift_get_i32(&p->r, f);
            break;
        case PQ_LOGICAL_TIME * 16 + 1:
        case PQ_LOGICAL_TIMESTAMP * 16 + 1:
            e->utc = thrift_get_bool(&p->r, f);
            break;
        case PQ_LOGICAL_TIME * 16 + 2:
        case PQ_LOGICAL_TIMESTAMP * 16 + 2:
            if (thrift_get_struct(&p->r, f))
                parse_unit(p, e);
            break;
        case PQ_LOGICAL_INTEGER * 16 + 1:
            e->bits = thrift_get_i32(&p->r, f);
            break;
        case PQ_LOGICAL_INTEGER * 16 + 2:
            e->is_signed = thrift_get_bool(&p->r, f);
            break;
        default:
            thrift_skip(&p->r, f);
        }
    }
}

static void parse_logical(struct parser *p, struct pq_element *e)
{
    struct thrift_field f;
    while (thrift_next(&p->r, &f)) {
        e->logical = f.id;
        if (f.type != THRIFT_STRUCT || f.id > PQ_LOGICAL_FLOAT16)
            thrift_skip(&p->r, f);
        else if (thrift_get_struct(&p->r, f))
            parse_logical_fields(p, e);
    }
}

static void parse_element(struct parser *p, struct pq_element *e)
{
    struct thrift_field f;
    struct thrift_reader *r = &p->r;
    *e = (struct pq_element){ .type = -1,
                              .type_length = -1,
                              .repetition = -1,
                              .children = -1,
                              .converted = -1,
                              .scale = -1,
                              .precision = -1,
                              .field_id = -1,
                              .name = STR_EMPTY };
    thrift_enter(r);
    while (thrift_next(r, &f)) {
        switch (f.id) {
        case 1:
            e->type = thrift_get_i32(r, f);
            break;
        case 2:
            e->type_length = thrift_get_i32(r, f);
            break;
        case 3:
            e->repetition = thrift_get_i32(r, f);
            break;
        case 4:
            e->name = thrift_get_binary(r, f);
            break;
        case 5:
            e->children = thrift_get_i32(r, f);
            break;
        case 6:
            e->converted = thrift_get_i32(r, f);
            break;
        case 7:
            e->scale = thrift_get_i32(r, f);
            break;
        case 8:
            e->precision = thrift_get_i32(r, f);
            break;
        case 9:
            e->field_id = thrift_get_i32(r, f);
            break;
        case 10:
            if (thrift_get_struct(r, f))
                parse_logical(p, e);
            break;
        default:
            thrift_skip(r, f);
        }
    }
}

static void parse_schema(struct parser *p, struct thrift_field f, struct pq_meta *meta)
{
    size_t count = thrift_get_list(&p->r, f, THRIFT_STRUCT);
    if (count == 0 || count > PQ_ELEMENTS_MAX) {
        thrift_fail(&p->r, "schema has no elements or too many");
        return;
    }
    meta->elements = list_room(p, count, sizeof *meta->elements);
    for (size_t i = 0; i < count && p->r.why == NULL; i++)
        parse_element(p, &meta->elements[i]);
    meta->elements_count = count;
}

/* ---- row groups ---- */

static void parse_stats(struct parser *p, struct pq_meta_stats *s)
{
    struct thrift_field f;
    struct thrift_reader *r = &p->r;
    unsigned seen = 0;
    while (thrift_next(r, &f)) {
        if (f.id < 8)
            seen |= 1U << f.id;
        switch (f.id) {
        case 1:
            s->old_max = thrift_get_binary(r, f);
            break;
        case 2:
            s->old_min = thrift_get_binary(r, f);
            break;
        case 3:
            s->nulls = (uint64_t)thrift_get_i64(r, f);
            s->nulls_known = s->nulls <= INT64_MAX;
            break;
        case 5:
            s->max = thrift_get_binary(r, f);
            break;
        case 6:
            s->min = thrift_get_binary(r, f);
            break;
        case 9:
            s->nans = (uint64_t)thrift_get_i64(r, f);
            s->nans_known = s->nans <= INT64_MAX;
            break;
        default:
            thrift_skip(r, f);
        }
    }
    s->old_known = (seen & 6) == 6;
    s->known = (seen & 0x60) == 0x60;
}

static uint32_t encoding_bit(int32_t encoding)
{
    return encoding >= 0 && encoding < 32 ? 1U << encoding : 0;
}

static void parse_encodings(struct parser *p, struct thrift_field f, struct pq_meta_chunk *c)
{
    for (size_t n = thrift_get_list(&p->r, f, THRIFT_I32); n > 0 && p->r.why == NULL; n--)
        c->encodings |= encoding_bit(thrift_item_get_i32(&p->r));
}

static void parse_encoding_stats(struct parser *p, struct thrift_field f, struct pq_meta_chunk *c)
{
    struct thrift_field field;
    for (size_t n = thrift_get_list(&p->r, f, THRIFT_STRUCT); n > 0 && p->r.why == NULL; n--) {
        int32_t type = -1, encoding = -1;
        thrift_enter(&p->r);
        while (thrift_next(&p->r, &field)) {
            if (field.id == 1)
                type = thrift_get_i32(&p->r, field);
            else if (field.id == 2)
                encoding = thrift_get_i32(&p->r, field);
            else
                thrift_skip(&p->r, field);
        }
        if (type == PQ_DATA_PAGE || type == PQ_DATA_PAGE_V2)
            c->data_encodings |= encoding_bit(encoding);
    }
}

/* Fields that only save work: what they should not be is as good as absent. */
static int64_t hint_i64(struct thrift_reader *r, struct thrift_field f)
{
    if (f.type >= THRIFT_I8 && f.type <= THRIFT_I64)
        return thrift_get_i64(r, f);
    thrift_skip(r, f);
    return 0;
}

static int32_t hint_i32(struct thrift_reader *r, struct thrift_field f)
{
    int64_t value = hint_i64(r, f);
    return value < 0 || value > INT32_MAX ? 0 : (int32_t)value;
}

static void parse_size_statistics(struct parser *p, struct pq_meta_chunk *c)
{
    struct thrift_field f;
    while (thrift_next(&p->r, &f)) {
        if (f.id == 1)
            c->string_bytes = hint_i64(&p->r, f);
        else
            thrift_skip(&p->r, f);
    }
}

static void parse_column_meta(struct parser *p, struct pq_meta_chunk *c)
{
    struct thrift_field f;
    struct thrift_reader *r = &p->r;
    c->present = true;
    while (thrift_next(r, &f)) {
        switch (f.id) {
        case 1:
            c->physical = thrift_get_i32(r, f);
            break;
        case 2:
            parse_encodings(p, f, c);
            break;
        case 4:
            c->codec = thrift_get_i32(r, f);
            break;
        case 5:
            c->entries = thrift_get_i64(r, f);
            break;
        case 6:
            c->uncompressed_bytes = thrift_get_i64(r, f);
            break;
        case 7:
            c->bytes = thrift_get_i64(r, f);
            break;
        case 9:
            c->data_offset = thrift_get_i64(r, f);
            break;
        case 11:
            c->dictionary_offset = thrift_get_i64(r, f);
            break;
        case 12:
            if (thrift_get_struct(r, f))
                parse_stats(p, &c->stats);
            break;
        case 13:
            parse_encoding_stats(p, f, c);
            break;
        case 14:
            c->bloom_offset = hint_i64(r, f);
            break;
        case 15:
            c->bloom_bytes = hint_i32(r, f);
            break;
        case 16:
            if (thrift_get_struct(r, f))
                parse_size_statistics(p, c);
            break;
        default:
            thrift_skip(r, f);
        }
    }
}

static void parse_chunk(struct parser *p, struct pq_meta_chunk *c)
{
    struct thrift_field f;
    struct thrift_reader *r = &p->r;
    const uint8_t *from;
    *c = (struct pq_meta_chunk){
        .physical = -1,
        .codec = -1,
        .entries = -1,
        .bytes = -1,
        .data_offset = -1,
        .dictionary_offset = -1,
        .string_bytes = -1,
    };
    thrift_enter(r);
    while (thrift_next(r, &f)) {
        switch (f.id) {
        case 1:
            c->elsewhere = true;
            thrift_skip(r, f);
            break;
        case 3:
            from = r->at;
            if (thrift_get_struct(r, f))
                parse_column_meta(p, c);
            c->text = str_make(from, (size_t)(r->at - from));
            break;
        case 4:
            c->offset_index_offset = hint_i64(r, f);
            break;
        case 5:
            c->offset_index_bytes = hint_i32(r, f);
            break;
        case 6:
            c->column_index_offset = hint_i64(r, f);
            break;
        case 7:
            c->column_index_bytes = hint_i32(r, f);
            break;
        case 8:
        case 9:
            p->encrypted = true;
            thrift_skip(r, f);
            break;
        default:
            thrift_skip(r, f);
        }
    }
}

static void parse_group(struct parser *p, struct pq_meta_group *g)
{
    struct thrift_field f;
    struct thrift_reader *r = &p->r;
    g->rows = -1;
    thrift_enter(r);
    while (thrift_next(r, &f)) {
        switch (f.id) {
        case 1:
            g->chunks_count = thrift_get_list(r, f, THRIFT_STRUCT);
            g->chunks = list_room(p, g->chunks_count, sizeof *g->chunks);
            for (size_t i = 0; i < g->chunks_count && r->why == NULL; i++)
                parse_chunk(p, &g->chunks[i]);
            break;
        case 3:
            g->rows = thrift_get_i64(r, f);
            break;
        default:
            thrift_skip(r, f);
        }
    }
}

static void parse_groups(struct parser *p, struct thrift_field f, struct pq_meta *meta)
{
    meta->groups_count = thrift_get_list(&p->r, f, THRIFT_STRUCT);
    meta->groups = list_room(p, meta->groups_count, sizeof *meta->groups);
    for (size_t i = 0; i < meta->groups_count && p->r.why == NULL; i++)
        parse_group(p, &meta->groups[i]);
}

static void parse_kv(struct parser *p, struct thrift_field f, struct pq_meta *meta)
{
    meta->kv_count = thrift_get_list(&p->r, f, THRIFT_STRUCT);
    meta->kv = list_room(p, meta->kv_count, sizeof *meta->kv);
    for (size_t i = 0; i < meta->kv_count && p->r.why == NULL; i++) {
        meta->kv[i].key = meta->kv[i].value = STR_EMPTY;
        thrift_enter(&p->r);
        while (thrift_next(&p->r, &f)) {
            if (f.id == 1)
                meta->kv[i].key = thrift_get_binary(&p->r, f);
            else if (f.id == 2)
                meta->kv[i].value = thrift_get_binary(&p->r, f);
            else
                thrift_skip(&p->r, f);
        }
    }
}

/* column_orders: one union a leaf; only those named TypeDefinedOrder count. */
static void parse_orders(struct parser *p, struct thrift_field f, struct pq_meta *meta, size_t *count)
{
    *count = thrift_get_list(&p->r, f, THRIFT_STRUCT);
    meta->type_order = list_room(p, *count, sizeof *meta->type_order);
    for (size_t i = 0; i < *count && p->r.why == NULL; i++) {
        thrift_enter(&p->r);
        while (thrift_next(&p->r, &f)) {
            meta->type_order[i] = f.id == 1;
            thrift_skip(&p->r, f);
        }
    }
}

/* ---- checks ---- */

static bool damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPTED_DATA, "Parquet footer: %s", what);
}

static bool check_leaf(const struct pq_element *e, struct err *err)
{
    static const uint8_t decimal_digits[] = { [PQ_INT32] = 9, [PQ_INT64] = 18 };
    if (e->type < PQ_BOOLEAN || e->type > PQ_FIXED)
        return damaged(err, "a leaf has no known type");
    if (e->type == PQ_FIXED && (e->type_length < 1 || e->type_length > PQ_FIXED_BYTES_MAX))
        return damaged(err, "a fixed length is out of range");
    if (e->logical == PQ_LOGICAL_DECIMAL || (e->logical == PQ_LOGICAL_NONE && e->converted == PQ_DECIMAL)) {
        int32_t precision = e->logical == PQ_LOGICAL_DECIMAL ? e->logical_precision : e->precision;
        int32_t scale = e->logical == PQ_LOGICAL_DECIMAL ? e->logical_scale : MAX(e->scale, 0);
        if (precision < 1 || precision > 76 || scale < 0 || scale > precision)
            return damaged(err, "a decimal's precision or scale is out of range");
        if ((e->type == PQ_INT32 || e->type == PQ_INT64) && precision > decimal_digits[e->type])
            return damaged(err, "a decimal does not fit its physical type");
        if (e->type != PQ_INT32 && e->type != PQ_INT64 && e->type != PQ_FIXED && e->type != PQ_BYTE_ARRAY)
            return damaged(err, "a decimal has an impossible physical type");
    }
    bool date = e->logical == PQ_LOGICAL_DATE || (e->logical == PQ_LOGICAL_NONE && e->converted == PQ_DATE);
    bool stamp = e->logical == PQ_LOGICAL_TIMESTAMP;
    if ((date && e->type != PQ_INT32) || (stamp && e->type != PQ_INT64) ||
        (e->logical == PQ_LOGICAL_STRING && e->type != PQ_BYTE_ARRAY) ||
        (e->logical == PQ_LOGICAL_UUID && (e->type != PQ_FIXED || e->type_length != 16)))
        return damaged(err, "an annotation does not fit its physical type");
    return true;
}

/* The list must be exactly one tree, depth first. */
static bool check_tree(struct pq_meta *meta, struct err *err)
{
    int32_t left[PQ_DEPTH_MAX];
    unsigned depth = 0;
    for (size_t i = 0; i < meta->elements_count; i++) {
        struct pq_element *e = &meta->elements[i];
        if (i > 0 && depth == 0)
            return damaged(err, "schema has elements outside its tree");
        if (i > 0 && e->repetition < 0)
            e->repetition = PQ_REQUIRED; /* as other readers take it */
        if (i > 0 && (e->repetition < PQ_REQUIRED || e->repetition > PQ_REPEATED))
            return damaged(err, "a schema element has no known repetition");
        if (i > 0)
            left[depth - 1]--;
        if (e->type < 0 || i == 0) {
            if (e->children < 0 || (e->children == 0 && i > 0))
                return damaged(err, "a schema group has no children");
            if (depth == PQ_DEPTH_MAX)
                return damaged(err, "schema is nested too deep");
            left[depth++] = e->children;
        } else {
            if (e->children > 0)
                return damaged(err, "a leaf has children");
            if (!check_leaf(e, err))
                return false;
            meta->leaves_count++;
        }
        while (depth > 0 && left[depth - 1] == 0)
            depth--;
    }
    return depth == 0 || damaged(err, "schema ends early");
}

static bool damaged_chunk(struct err *err, size_t group, size_t column, const char *what)
{
    return err_set(err, ERR_CORRUPTED_DATA, "Parquet footer: row group %zu, column %zu: %s", group, column, what);
}

static bool check_chunk(const struct pq_meta *meta, size_t group, size_t column, const struct pq_element *leaf,
                        uint64_t footer_offset, struct err *err)
{
    struct pq_meta_chunk *c = &meta->groups[group].chunks[column];
    int64_t rows = meta->groups[group].rows, start;
    if (c->elsewhere)
        return damaged_chunk(err, group, column, "its data is in another file");
    if (!c->present || c->physical != leaf->type)
        return damaged_chunk(err, group, column, "its type differs from the schema's");
    if (c->entries < 0 || c->bytes < 0 || c->codec < 0)
        return damaged_chunk(err, group, column, "a count or size is missing or negative");
    if (rows > c->entries)
        return damaged_chunk(err, group, column, "it has fewer values than rows");
    if (c->entries == 0) /* nothing will be read; some writers leave a dictionary */
        return true;
    /* Writers put 0 or nonsense where there is no dictionary; the page type tells in the end. */
    if (c->dictionary_offset < 4 || c->dictionary_offset > c->data_offset)
        c->dictionary_offset = -1;
    start = c->dictionary_offset >= 0 ? c->dictionary_offset : c->data_offset;
    if (start < 4 || (uint64_t)start > footer_offset || (uint64_t)c->bytes > footer_offset - (uint64_t)start)
        return damaged_chunk(err, group, column, "its pages lie outside the file");
    return true;
}

static bool check_groups(struct pq_meta *meta, uint64_t footer_offset, struct err *err)
{
    int64_t rows = 0;
    for (size_t g = 0; g < meta->groups_count; g++) {
        if (meta->groups[g].rows < 0 || __builtin_add_overflow(rows, meta->groups[g].rows, &rows))
            return damaged(err, "a row group's row count is impossible");
        if (meta->groups[g].chunks_count != meta->leaves_count)
            return damaged(err, "a row group has not one chunk a leaf");
        size_t column = 0;
        for (size_t i = 0; i < meta->elements_count; i++) {
            const struct pq_element *e = &meta->elements[i];
            if (i > 0 && e->type >= 0 && !check_chunk(meta, g, column++, e, footer_offset, err))
                return false;
        }
    }
    meta->groups_rows = rows;
    return true;
}

bool pq_meta_parse(struct str footer, uint64_t footer_offset, struct arena *arena, struct pq_meta *meta,
                   struct err *err)
{
    struct parser p = { .arena = arena };
    struct thrift_field f;
    size_t orders = 0;
    *meta = (struct pq_meta){ .rows = -1, .created_by = STR_EMPTY };
    p.budget = footer.len * BUDGET_FACTOR + BUDGET_BASE;
    thrift_reader_init(&p.r, footer);
    thrift_enter(&p.r);
    while (thrift_next(&p.r, &f)) {
        switch (f.id) {
        case 2:
            parse_schema(&p, f, meta);
            break;
        case 3:
            meta->rows = thrift_get_i64(&p.r, f);
            break;
        case 4:
            parse_groups(&p, f, meta);
            break;
        case 5:
            parse_kv(&p, f, meta);
            break;
        case 6:
            meta->created_by = thrift_get_binary(&p.r, f);
            break;
        case 7:
            parse_orders(&p, f, meta, &orders);
            break;
        case 8:
            p.encrypted = true;
            thrift_skip(&p.r, f);
            break;
        default:
            thrift_skip(&p.r, f);
        }
    }
    if (p.r.why != NULL)
        return damaged(err, p.r.why);
    if (p.encrypted)
        return err_set(err, ERR_NOT_IMPLEMENTED, "encrypted Parquet files cannot be read");
    if (meta->elements_count == 0 || meta->rows < 0)
        return damaged(err, "schema or row count is missing");
    if (!check_tree(meta, err) || !check_groups(meta, footer_offset, err))
        return false;
    if (orders != meta->leaves_count)
        meta->type_order = NULL;
    return true;
}

/* ---- page headers ---- */

static void parse_page_v1(struct thrift_reader *r, struct pq_page_header *h)
{
    struct thrift_field f;
    while (thrift_next(r, &f)) {
        if (f.id == 1)
            h->entries = thrift_get_i32(r, f);
        else if (f.id == 2)
            h->encoding = thrift_get_i32(r, f);
        else if (f.id == 3)
            h->def_encoding = thrift_get_i32(r, f);
        else if (f.id == 4)
            h->rep_encoding = thrift_get_i32(r, f);
        else
            thrift_skip(r, f);
    }
}

static void parse_page_dictionary(struct thrift_reader *r, struct pq_page_header *h)
{
    struct thrift_field f;
    while (thrift_next(r, &f)) {
        if (f.id == 1)
            h->entries = thrift_get_i32(r, f);
        else if (f.id == 2)
            h->encoding = thrift_get_i32(r, f);
        else
            thrift_skip(r, f);
    }
}

static void parse_page_v2(struct thrift_reader *r, struct pq_page_header *h)
{
    struct thrift_field f;
    int32_t def = -1, rep = -1;
    h->compressed = true;
    while (thrift_next(r, &f)) {
        switch (f.id) {
        case 1:
            h->entries = thrift_get_i32(r, f);
            break;
        case 2:
            h->nulls = thrift_get_i32(r, f);
            break;
        case 3:
            h->rows = thrift_get_i32(r, f);
            break;
        case 4:
            h->encoding = thrift_get_i32(r, f);
            break;
        case 5:
            def = thrift_get_i32(r, f);
            break;
        case 6:
            rep = thrift_get_i32(r, f);
            break;
        case 7:
            h->compressed = thrift_get_bool(r, f);
            break;
        default:
            thrift_skip(r, f);
        }
    }
    if (def < 0 || rep < 0 || (int64_t)def + rep > h->bytes || (int64_t)def + rep > h->uncompressed_bytes)
        thrift_fail(r, "levels are longer than the page");
    h->def_bytes = (uint32_t)MAX(def, 0);
    h->rep_bytes = (uint32_t)MAX(rep, 0);
}

bool pq_page_header_parse(struct str bytes, struct pq_page_header *h, size_t *header_bytes, struct err *err)
{
    struct thrift_reader r;
    struct thrift_field f;
    int32_t uncompressed = -1, compressed = -1, body = 0;
    *h = (struct pq_page_header){ .type = -1, .entries = -1, .encoding = -1 };
    thrift_reader_init(&r, str_sub(bytes, 0, PQ_PAGE_HEADER_MAX));
    thrift_enter(&r);
    while (thrift_next(&r, &f)) {
        switch (f.id) {
        case 1:
            h->type = thrift_get_i32(&r, f);
            break;
        case 2:
            uncompressed = thrift_get_i32(&r, f);
            h->uncompressed_bytes = (uint32_t)MAX(uncompressed, 0);
            break;
        case 3:
            compressed = thrift_get_i32(&r, f);
            h->bytes = (uint32_t)MAX(compressed, 0);
            break;
        case 4:
            h->crc = (uint32_t)thrift_get_i32(&r, f);
            h->has_crc = true;
            break;
        case 5:
            body = body == 0 ? f.id : -1;
            if (thrift_get_struct(&r, f))
                parse_page_v1(&r, h);
            break;
        case 7:
            body = body == 0 ? f.id : -1;
            if (thrift_get_struct(&r, f))
                parse_page_dictionary(&r, h);
            break;
        case 8:
            body = body == 0 ? f.id : -1;
            if (thrift_get_struct(&r, f))
                parse_page_v2(&r, h);
            break;
        default:
            thrift_skip(&r, f);
        }
    }
    static const int bodies[] = {
        [PQ_DATA_PAGE] = 5, [PQ_INDEX_PAGE] = 0, [PQ_DICTIONARY_PAGE] = 7, [PQ_DATA_PAGE_V2] = 8
    };
    bool known = h->type >= 0 && h->type < (int32_t)ARRAY_COUNT(bodies);
    if (r.why == NULL &&
        (uncompressed < 0 || compressed < 0 || uncompressed > PQ_PAGE_BYTES_MAX || compressed > PQ_PAGE_BYTES_MAX))
        thrift_fail(&r, "a size is missing or out of range");
    if (r.why == NULL && known && h->type != PQ_INDEX_PAGE && (body != bodies[h->type] || h->entries < 0))
        thrift_fail(&r, "the type's own header or its count is missing");
    if (r.why != NULL)
        return err_set(err, ERR_CORRUPTED_DATA, "page header: %s", r.why);
    *header_bytes = (size_t)(r.at - r.start);
    return true;
}
