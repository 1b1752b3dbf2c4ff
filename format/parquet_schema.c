/* The Parquet tree of a Sluice schema: which element, physical type and annotation each type gets in each profile. */
#include "base/text.h"
#include "format/parquet_impl.h"

struct builder {
    struct arena *arena;
    enum parquet_profile profile;
    struct pq_element *elements;
    size_t elements_count, elements_cap;
    struct pq_leaf *leaves;
    size_t leaves_count, leaves_cap;
    /* Where we are. */
    size_t column;
    unsigned field_id, inner_count;
    struct str names[PQ_DEPTH_MAX];
    unsigned names_count;
    uint8_t path[PQ_DEPTH_MAX];
    unsigned path_count;
    unsigned lists_count, def;
    uint8_t list_def[PQ_DEPTH_MAX]; /* of each list we are in: the definition level of an element */
    bool in_null_group;             /* without a list between */
    struct err *err;
};

static void *grow(struct arena *arena, void *old, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return old;
    size_t next = MAX(*cap * 2, (size_t)16);
    void *array = arena_alloc(arena, next * size);
    if (count > 0)
        memcpy(array, old, count * size);
    *cap = next;
    return array;
}

/* Ids of what lies inside a column: above all column ids, and fixed by the column's id and the place in it. */
static int32_t next_field_id(struct builder *b)
{
    enum { INNER_BASE = 1 << 24, INNER_MAX = 1024, COLUMN_MAX = 1 << 20 };
    if (b->inner_count++ == 0 && b->field_id != 0 && b->field_id <= INT32_MAX)
        return (int32_t)b->field_id;
    if (b->field_id == 0 || b->inner_count > INNER_MAX || b->field_id >= COLUMN_MAX)
        return -1;
    return (int32_t)(INNER_BASE + b->field_id * INNER_MAX + b->inner_count - 1);
}

static struct pq_element *add_element(struct builder *b, struct str name, enum pq_repetition repetition)
{
    b->elements = grow(b->arena, b->elements, b->elements_count, &b->elements_cap, sizeof *b->elements);
    struct pq_element *e = &b->elements[b->elements_count++];
    *e = (struct pq_element){ .name = name,
                              .type = -1,
                              .type_length = -1,
                              .repetition = (int32_t)repetition,
                              .children = -1,
                              .converted = PQ_CONVERTED_NONE,
                              .scale = -1,
                              .precision = -1,
                              .field_id = next_field_id(b) };
    return e;
}

static void annotate_string(struct pq_element *e)
{
    e->logical = PQ_LOGICAL_STRING;
    e->converted = PQ_UTF8;
}

static void annotate_integer(struct pq_element *e, int bits, bool is_signed)
{
    e->logical = PQ_LOGICAL_INTEGER;
    e->bits = bits;
    e->is_signed = is_signed;
    int step = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3;
    e->converted = (is_signed ? PQ_INT_8 : PQ_UINT_8) + step;
}

static void annotate_timestamp(struct pq_element *e, enum pq_unit unit)
{
    e->logical = PQ_LOGICAL_TIMESTAMP;
    e->unit = (int32_t)unit;
    e->utc = true;
    if (unit != PQ_NANOS)
        e->converted = unit == PQ_MILLIS ? PQ_TIMESTAMP_MILLIS : PQ_TIMESTAMP_MICROS;
}

static void set_leaf(struct pq_leaf *leaf, enum pq_physical physical, uint32_t width, enum pq_convert convert,
                     enum pq_order order)
{
    leaf->physical = physical;
    leaf->width = width;
    leaf->convert = convert;
    leaf->order = order;
}

static void set_text(struct pq_leaf *leaf, struct pq_element *e, enum pq_convert convert)
{
    set_leaf(leaf, PQ_BYTE_ARRAY, 0, convert, PQ_ORDER_BYTES);
    leaf->string = true;
    annotate_string(e);
}

static void set_fixed(struct pq_leaf *leaf, uint32_t width, enum pq_convert convert, enum pq_order order)
{
    set_leaf(leaf, PQ_FIXED, width, convert, order);
}

static int64_t power_of_ten(unsigned n)
{
    int64_t value = 1;
    while (n-- > 0)
        value *= 10;
    return value;
}

static void leaf_integer(struct pq_leaf *leaf, struct pq_element *e, bool lake)
{
    switch (leaf->type->kind) {
    case TYPE_INT8:
    case TYPE_INT16:
        set_leaf(leaf, PQ_INT32, 4, PQ_WIDEN, PQ_ORDER_SIGNED);
        annotate_integer(e, leaf->type->kind == TYPE_INT8 ? 8 : 16, true);
        return;
    case TYPE_UINT8:
        set_leaf(leaf, PQ_INT32, 4, PQ_WIDEN, lake ? PQ_ORDER_SIGNED : PQ_ORDER_UNSIGNED);
        annotate_integer(e, lake ? 16 : 8, lake);
        return;
    case TYPE_UINT16:
        set_leaf(leaf, PQ_INT32, 4, PQ_WIDEN, lake ? PQ_ORDER_SIGNED : PQ_ORDER_UNSIGNED);
        if (!lake)
            annotate_integer(e, 16, false);
        return;
    case TYPE_UINT32:
        if (lake) {
            set_leaf(leaf, PQ_INT64, 8, PQ_WIDEN, PQ_ORDER_SIGNED);
            return;
        }
        set_leaf(leaf, PQ_INT32, 4, PQ_COPY, PQ_ORDER_UNSIGNED);
        annotate_integer(e, 32, false);
        return;
    case TYPE_INT32:
        set_leaf(leaf, PQ_INT32, 4, PQ_COPY, PQ_ORDER_SIGNED);
        return;
    case TYPE_UINT64:
        set_leaf(leaf, PQ_INT64, 8, PQ_COPY, PQ_ORDER_UNSIGNED);
        annotate_integer(e, 64, false);
        return;
    default:
        set_leaf(leaf, PQ_INT64, 8, PQ_COPY, PQ_ORDER_SIGNED);
    }
}

static void leaf_wide_integer(struct pq_leaf *leaf, struct pq_element *e, enum parquet_profile profile)
{
    uint32_t width = (uint32_t)type_width(leaf->type);
    if (profile == PARQUET_LAKE) {
        set_text(leaf, e, PQ_TEXT);
        return;
    }
    if (profile == PARQUET_ANSWER) {
        set_fixed(leaf, width, PQ_COPY, PQ_ORDER_BYTES);
        return;
    }
    set_fixed(leaf, width, PQ_BIG_ENDIAN, PQ_ORDER_BYTES);
    leaf->flip = leaf->type->kind == TYPE_INT128 || leaf->type->kind == TYPE_INT256;
}

static unsigned time_precision(const struct type *type)
{
    return type->kind == TYPE_DATETIME ? 0 : type->precision;
}

static enum pq_unit time_unit(unsigned precision, bool lake)
{
    if (precision > 6)
        return PQ_NANOS;
    return !lake && precision <= 3 ? PQ_MILLIS : PQ_MICROS;
}

/* A cell's ticks times this are the Parquet value. */
static int64_t time_factor(unsigned precision, bool lake)
{
    enum pq_unit unit = time_unit(precision, lake);
    return power_of_ten((unit == PQ_NANOS ? 9 : unit == PQ_MICROS ? 6 : 3) - precision);
}

static void leaf_time(struct pq_leaf *leaf, struct pq_element *e, bool lake)
{
    unsigned precision = time_precision(leaf->type);
    set_leaf(leaf, PQ_INT64, 8, PQ_SCALE, PQ_ORDER_SIGNED);
    leaf->timestamp = true;
    leaf->factor = time_factor(precision, lake);
    if (!lake || precision <= 6) /* the lake's nanoseconds are plain integers */
        annotate_timestamp(e, time_unit(precision, lake));
}

static bool times_fit(const struct column *c, size_t from, size_t to, bool lake, const struct type **type)
{
    if (c->type->kind == TYPE_DATETIME64) {
        int64_t factor = time_factor(c->type->precision, lake), ticks, value;
        for (size_t row = from; row < to; row++) {
            memcpy(&ticks, column_cell(c, row), sizeof ticks);
            if (__builtin_mul_overflow(ticks, factor, &value)) {
                *type = c->type;
                return false;
            }
        }
    }
    bool by_offset = c->type->kind != TYPE_TUPLE && c->children_count > 0;
    size_t first = by_offset ? (size_t)column_start(c, from) : from;
    size_t end = by_offset ? (size_t)column_start(c, to) : to;
    for (size_t i = 0; i < c->children_count; i++)
        if (!times_fit(&c->children[i], first, end, lake, type))
            return false;
    return true;
}

bool parquet_times_fit(const struct block *block, size_t row_first, enum parquet_profile profile, struct err *err)
{
    const struct type *type;
    for (size_t i = 0; i < block->columns_count; i++)
        if (!times_fit(&block->columns[i], row_first, block->rows, profile == PARQUET_LAKE, &type))
            return err_set(err, ERR_ARGUMENT_OUT_OF_BOUND, "column " STR_FMT ": a " STR_FMT " is out of range",
                           STR_ARG(block->names[i]), STR_ARG(type->text));
    return true;
}

static void leaf_decimal(struct pq_leaf *leaf, struct pq_element *e, bool lake)
{
    const struct type *type = leaf->type;
    if (type->precision > 38 && lake) {
        set_text(leaf, e, PQ_TEXT);
        return;
    }
    if (type->precision <= 9)
        set_leaf(leaf, PQ_INT32, 4, PQ_COPY, PQ_ORDER_SIGNED);
    else if (type->precision <= 18)
        set_leaf(leaf, PQ_INT64, 8, PQ_COPY, PQ_ORDER_SIGNED);
    else
        set_fixed(leaf, type->precision <= 38 ? 16 : 32, PQ_BIG_ENDIAN, PQ_ORDER_BIG_ENDIAN);
    e->logical = PQ_LOGICAL_DECIMAL;
    e->converted = PQ_DECIMAL;
    e->scale = e->logical_scale = type->scale;
    e->precision = e->logical_precision = type->precision;
}

/* False for a type that is no leaf of ours. */
static bool leaf_type(struct pq_leaf *leaf, struct pq_element *e, enum parquet_profile profile)
{
    bool lake = profile == PARQUET_LAKE;
    switch (leaf->type->kind) {
    case TYPE_UINT8:
    case TYPE_UINT16:
    case TYPE_UINT32:
    case TYPE_UINT64:
    case TYPE_INT8:
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
        leaf_integer(leaf, e, lake);
        break;
    case TYPE_UINT128:
    case TYPE_UINT256:
    case TYPE_INT128:
    case TYPE_INT256:
        leaf_wide_integer(leaf, e, profile);
        break;
    case TYPE_BFLOAT16:
        set_leaf(leaf, PQ_FLOAT, 4, PQ_WIDEN, PQ_ORDER_FLOAT);
        break;
    case TYPE_FLOAT32:
        set_leaf(leaf, PQ_FLOAT, 4, PQ_COPY, PQ_ORDER_FLOAT);
        break;
    case TYPE_FLOAT64:
        set_leaf(leaf, PQ_DOUBLE, 8, PQ_COPY, PQ_ORDER_FLOAT);
        break;
    case TYPE_BOOL:
        set_leaf(leaf, PQ_BOOLEAN, 0, PQ_BOOL, PQ_ORDER_UNSIGNED);
        break;
    case TYPE_STRING:
        set_text(leaf, e, PQ_BYTES);
        break;
    case TYPE_FIXED_STRING:
        if (lake)
            set_leaf(leaf, PQ_BYTE_ARRAY, 0, PQ_FIXED_BYTES, PQ_ORDER_BYTES);
        else
            set_fixed(leaf, leaf->type->fixed_bytes, PQ_COPY, PQ_ORDER_BYTES);
        break;
    case TYPE_DATE:
    case TYPE_DATE32:
        set_leaf(leaf, PQ_INT32, 4, leaf->type->kind == TYPE_DATE ? PQ_WIDEN : PQ_COPY, PQ_ORDER_SIGNED);
        e->logical = PQ_LOGICAL_DATE;
        e->converted = PQ_DATE;
        break;
    case TYPE_DATETIME:
    case TYPE_DATETIME64:
        leaf_time(leaf, e, lake);
        break;
    case TYPE_TIME: /* Parquet's TIME is of one day and has no sign: these are plain numbers */
        set_leaf(leaf, PQ_INT32, 4, PQ_COPY, PQ_ORDER_SIGNED);
        break;
    case TYPE_TIME64:
        set_leaf(leaf, PQ_INT64, 8, PQ_COPY, PQ_ORDER_SIGNED);
        break;
    case TYPE_DECIMAL:
        leaf_decimal(leaf, e, lake);
        break;
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        set_text(leaf, e, PQ_ENUM_NAME);
        break;
    case TYPE_UUID:
        if (lake) {
            set_text(leaf, e, PQ_UUID_TEXT);
            break;
        }
        set_fixed(leaf, 16, PQ_COPY, PQ_ORDER_BYTES);
        e->logical = PQ_LOGICAL_UUID;
        break;
    case TYPE_IPV4:
        if (lake) {
            set_text(leaf, e, PQ_TEXT);
            break;
        }
        set_leaf(leaf, PQ_INT32, 4, PQ_COPY, PQ_ORDER_UNSIGNED);
        annotate_integer(e, 32, false);
        break;
    case TYPE_IPV6:
        if (lake)
            set_text(leaf, e, PQ_TEXT);
        else
            set_fixed(leaf, 16, PQ_COPY, PQ_ORDER_BYTES);
        break;
    default:
        return false;
    }
    e->type = (int32_t)leaf->physical;
    if (leaf->physical == PQ_FIXED)
        e->type_length = (int32_t)leaf->width;
    return true;
}

/* What others could not tell from a number. */
static bool is_unknown_to_answers(const struct type *type)
{
    return type->kind == TYPE_BFLOAT16 || type->kind == TYPE_TIME || type->kind == TYPE_TIME64;
}

static bool add_leaf(struct builder *b, const struct type *type, struct str name)
{
    b->leaves = grow(b->arena, b->leaves, b->leaves_count, &b->leaves_cap, sizeof *b->leaves);
    struct pq_leaf *leaf = &b->leaves[b->leaves_count++];
    struct pq_element *e = add_element(b, name, type->nullable ? PQ_OPTIONAL : PQ_REQUIRED);
    *leaf = (struct pq_leaf){ .type = type,
                              .column = b->column,
                              .element = b->elements_count - 1,
                              .path_count = b->path_count,
                              .lists_count = b->lists_count,
                              .max_def = b->def + type->nullable,
                              .max_rep = b->lists_count,
                              .names_count = b->names_count };
    memcpy(leaf->path, b->path, b->path_count);
    memcpy(leaf->list_def, b->list_def, b->lists_count);
    leaf->names = ARENA_ARRAY(b->arena, struct str, b->names_count);
    memcpy(leaf->names, b->names, b->names_count * sizeof *b->names);
    if (b->profile == PARQUET_ANSWER && is_unknown_to_answers(type))
        return err_set(b->err, ERR_UNKNOWN_TYPE,
                       "Internal type '" STR_FMT "' is not supported for conversion into Parquet data format",
                       STR_ARG(type->text));
    if ((b->in_null_group && !type->nullable) || !leaf_type(leaf, e, b->profile))
        return err_set(b->err, ERR_NOT_IMPLEMENTED, "type " STR_FMT " cannot be stored", STR_ARG(type->text));
    return true;
}

static bool add_type(struct builder *b, const struct type *type, struct str name);

static bool add_child(struct builder *b, const struct type *type, size_t child, struct str name)
{
    must(child <= UINT8_MAX || child < type->children_count);
    if (child > UINT8_MAX)
        return err_set(b->err, ERR_NOT_IMPLEMENTED, "a tuple of more than 256 fields cannot be stored");
    b->path[b->path_count++] = (uint8_t)child;
    bool ok = add_type(b, type->children[child], name);
    b->path_count--;
    return ok;
}

static struct str field_name(struct builder *b, const struct type *type, size_t i)
{
    if (type->names != NULL)
        return type->names[i];
    return str_of(arena_printf(b->arena, "%zu", i + 1));
}

static bool add_fields(struct builder *b, const struct type *type)
{
    for (size_t i = 0; i < type->children_count; i++)
        if (!add_child(b, type, i, field_name(b, type, i)))
            return false;
    return true;
}

/* group list of Array and Nested, key_value of Map: the level that repeats. */
static bool add_repeated(struct builder *b, const struct type *type)
{
    bool map = type->kind == TYPE_MAP;
    struct str name = map ? STR("key_value") : STR("list");
    struct pq_element *repeated = add_element(b, name, PQ_REPEATED);
    repeated->children = map ? 2 : 1;
    bool ok, in_null_group = b->in_null_group;
    b->in_null_group = false;
    b->names[b->names_count++] = name;
    b->list_def[b->lists_count++] = (uint8_t)++b->def;
    if (map) {
        ok = add_child(b, type, 0, STR("key")) && add_child(b, type, 1, STR("value"));
    } else if (type->kind == TYPE_NESTED) {
        struct pq_element *element = add_element(b, STR("element"), PQ_REQUIRED);
        element->children = (int32_t)type->children_count;
        b->names[b->names_count++] = STR("element");
        ok = add_fields(b, type);
        b->names_count--;
    } else {
        ok = add_child(b, type, 0, STR("element"));
    }
    b->names_count--;
    b->lists_count--;
    b->def--;
    b->in_null_group = in_null_group;
    return ok;
}

/* No table has nullable groups, but files for others to read may (delta_checkpoint.c). What is NULL in one holds no
 * values further down: the leaves below are nullable too, unless a list stands between. */
static bool add_group(struct builder *b, const struct type *type, struct str name)
{
    if (type->children_count == 0)
        return err_set(b->err, ERR_NOT_IMPLEMENTED, "an empty tuple cannot be stored");
    struct pq_element *group = add_element(b, name, type->nullable ? PQ_OPTIONAL : PQ_REQUIRED);
    bool ok, in_null_group = b->in_null_group;
    b->in_null_group = in_null_group || type->nullable;
    b->def += type->nullable;
    if (type->kind == TYPE_TUPLE) {
        group->children = (int32_t)type->children_count;
        ok = add_fields(b, type);
    } else {
        group->children = 1;
        group->logical = type->kind == TYPE_MAP ? PQ_LOGICAL_MAP : PQ_LOGICAL_LIST;
        group->converted = type->kind == TYPE_MAP ? PQ_MAP : PQ_LIST;
        ok = add_repeated(b, type);
    }
    b->def -= type->nullable;
    b->in_null_group = in_null_group;
    return ok;
}

static bool add_type(struct builder *b, const struct type *type, struct str name)
{
    enum { ROOM = 4 }; /* what one level of type adds at most, and the root */
    if (b->names_count + ROOM > PQ_DEPTH_MAX)
        return err_set(b->err, ERR_NOT_IMPLEMENTED, "a type is nested too deep to be stored");
    if (name.len == 0 || !text_is_utf8(name) || memchr(name.data, 0, name.len) != NULL)
        return err_set(b->err, ERR_BAD_ARGUMENTS, "a column's name is empty or not UTF-8");
    b->names[b->names_count++] = name;
    bool group =
        type->kind == TYPE_ARRAY || type->kind == TYPE_MAP || type->kind == TYPE_TUPLE || type->kind == TYPE_NESTED;
    bool ok = group ? add_group(b, type, name) : add_leaf(b, type, name);
    b->names_count--;
    return ok;
}

bool pq_schema_build(const struct schema *schema, enum parquet_profile profile, struct arena *arena,
                     struct pq_schema *out, struct err *err)
{
    struct builder b = { .arena = arena, .profile = profile, .err = err, .inner_count = 1 };
    struct pq_element *root = add_element(&b, STR("schema"), PQ_REQUIRED);
    root->repetition = -1;
    root->field_id = -1;
    root->children = (int32_t)schema->columns_count;
    size_t *column_leaf = ARENA_ARRAY(arena, size_t, schema->columns_count + 1);
    for (size_t i = 0; i < schema->columns_count; i++) {
        const struct schema_column *column = &schema->columns[i];
        b.column = i;
        b.field_id = column->field_id;
        b.inner_count = 0;
        column_leaf[i] = b.leaves_count;
        if (!add_type(&b, column->type, column->name))
            return err_wrap(err, "column " STR_FMT, STR_ARG(column->name));
    }
    column_leaf[schema->columns_count] = b.leaves_count;
    *out = (struct pq_schema){ .elements = b.elements,
                               .elements_count = b.elements_count,
                               .leaves = b.leaves,
                               .leaves_count = b.leaves_count,
                               .column_leaf = column_leaf };
    return true;
}

const struct column *pq_leaf_column(const struct pq_leaf *leaf, const struct column *top)
{
    for (unsigned i = 0; i < leaf->path_count; i++)
        top = &top->children[leaf->path[i]];
    return top;
}

const char *pq_encoding_name(int encoding)
{
    static const char *const names[] = {
        "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
        "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
        "RLE_DICTIONARY", "BYTE_STREAM_SPLIT",
    };
    return encoding >= 0 && (size_t)encoding < ARRAY_COUNT(names) ? names[encoding] : "unknown";
}
