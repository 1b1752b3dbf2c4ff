/* The schema of a file that others wrote: what ClickHouse infers for each column.
 *
 * The list of elements is walked once, depth first. On the way each column's type is printed as text, and each leaf
 * notes its levels and its place below the column; the text is then parsed, which checks it and gives the leaves their
 * types.
 *
 *   optional T                                  Nullable(T); an optional group makes the leaves below it Nullable
 *   repeated T, without annotation              Array(T)
 *   LIST, three levels or the older two         Array(element)
 *   MAP or MAP_KEY_VALUE                        Map(key, value); without a value Array(key)
 *   another group                               Tuple(fields)
 *
 * No column can hold a NULL list, map or tuple: these are read as empty, and as a tuple of NULLs. */
#include "format/lexer.h"
#include "format/parquet_impl.h"

enum { TYPE_TEXT_MAX = 256 << 10 };

struct walk {
    const struct pq_element *elements;
    size_t at; /* the element that is next */
    struct arena *arena;
    struct pq_leaf *leaves;
    size_t leaves_count;
    struct strbuf text; /* of the column's type */
    /* Where we are. */
    size_t column;
    uint8_t path[PQ_DEPTH_MAX];
    unsigned path_count;
    uint8_t list_def[PQ_DEPTH_MAX];
    unsigned lists_count, def;
    bool key; /* of a map: never Nullable */
    struct err *err;
};

static bool refuse(struct walk *w, const char *what)
{
    return err_set(w->err, ERR_NOT_IMPLEMENTED, "Parquet file: %s", what);
}

/* ---- leaves ---- */

static int bits_of(int converted)
{
    return 8 << (converted - (converted >= PQ_INT_8 ? PQ_INT_8 : PQ_UINT_8));
}

/* The annotation in LogicalType's terms: ConvertedType counts where there is no other. */
static struct pq_element annotation_of(const struct pq_element *e)
{
    static const uint8_t logicals[] = { [PQ_UTF8] = PQ_LOGICAL_STRING,
                                        [PQ_ENUM] = PQ_LOGICAL_ENUM,
                                        [PQ_DECIMAL] = PQ_LOGICAL_DECIMAL,
                                        [PQ_DATE] = PQ_LOGICAL_DATE,
                                        [PQ_TIME_MILLIS] = PQ_LOGICAL_TIME,
                                        [PQ_TIME_MICROS] = PQ_LOGICAL_TIME,
                                        [PQ_TIMESTAMP_MILLIS] = PQ_LOGICAL_TIMESTAMP,
                                        [PQ_TIMESTAMP_MICROS] = PQ_LOGICAL_TIMESTAMP,
                                        [PQ_JSON] = PQ_LOGICAL_JSON,
                                        [PQ_BSON] = PQ_LOGICAL_BSON };
    struct pq_element out = *e;
    if (e->logical != PQ_LOGICAL_NONE || e->converted < 0)
        return out;
    if (e->converted >= PQ_UINT_8 && e->converted < PQ_INT_8 + 4) {
        out.logical = PQ_LOGICAL_INTEGER;
        out.bits = bits_of(e->converted);
        out.is_signed = e->converted >= PQ_INT_8;
        return out;
    }
    if ((size_t)e->converted < ARRAY_COUNT(logicals))
        out.logical = logicals[e->converted];
    bool millis = e->converted == PQ_TIME_MILLIS || e->converted == PQ_TIMESTAMP_MILLIS;
    out.unit = millis ? PQ_MILLIS : PQ_MICROS;
    out.logical_scale = MAX(e->scale, 0);
    out.logical_precision = e->precision;
    return out;
}

static bool set_type(struct walk *w, struct pq_leaf *leaf, enum pq_convert convert, const char *type)
{
    leaf->convert = convert;
    strbuf_add_text(&w->text, type);
    return true;
}

static bool plain_leaf(struct walk *w, struct pq_leaf *leaf)
{
    switch (leaf->physical) {
    case PQ_BOOLEAN:
        return set_type(w, leaf, PQ_BOOL, "Bool");
    case PQ_INT32:
        return set_type(w, leaf, PQ_COPY, "Int32");
    case PQ_INT64:
        return set_type(w, leaf, PQ_COPY, "Int64");
    case PQ_INT96:
        return set_type(w, leaf, PQ_JULIAN, "DateTime64(9, 'UTC')");
    case PQ_FLOAT:
        return set_type(w, leaf, PQ_COPY, "Float32");
    case PQ_DOUBLE:
        return set_type(w, leaf, PQ_COPY, "Float64");
    case PQ_BYTE_ARRAY:
        return set_type(w, leaf, PQ_BYTES, "String");
    default:
        leaf->convert = PQ_COPY;
        strbuf_addf(&w->text, "FixedString(%u)", leaf->width);
        return true;
    }
}

static bool integer_leaf(struct walk *w, struct pq_leaf *leaf, const struct pq_element *a)
{
    bool wide = leaf->physical == PQ_INT64, narrow = a->bits == 8 || a->bits == 16;
    if (wide ? a->bits != 64 : leaf->physical != PQ_INT32 || !(narrow || a->bits == 32))
        return false;
    leaf->convert = narrow ? PQ_WIDEN : PQ_COPY;
    strbuf_addf(&w->text, "%sInt%d", a->is_signed ? "" : "U", (int)a->bits);
    return true;
}

static bool decimal_leaf(struct walk *w, struct pq_leaf *leaf, const struct pq_element *a)
{
    enum { DIGITS_OF_INT32 = 9 };
    bool bytes = leaf->physical == PQ_FIXED || leaf->physical == PQ_BYTE_ARRAY;
    bool narrow = leaf->physical == PQ_INT64 && a->logical_precision <= DIGITS_OF_INT32;
    leaf->convert = bytes ? PQ_DECIMAL_BYTES : narrow ? PQ_WIDEN : PQ_COPY;
    strbuf_addf(&w->text, "Decimal(%d, %d)", (int)a->logical_precision, (int)a->logical_scale);
    return true; /* the rest was checked with the footer */
}

static bool time_leaf(struct walk *w, struct pq_leaf *leaf, const struct pq_element *a)
{
    bool short_time = a->logical == PQ_LOGICAL_TIME && a->unit == PQ_MILLIS;
    if (a->unit < PQ_MILLIS || a->unit > PQ_NANOS || leaf->physical != (short_time ? PQ_INT32 : PQ_INT64))
        return false;
    leaf->convert = short_time ? PQ_WIDEN : PQ_COPY;
    strbuf_addf(&w->text, "DateTime64(%d, 'UTC')", 3 * (int)a->unit);
    return true;
}

/* False for an annotation that does not fit the physical type. */
static bool annotated_leaf(struct walk *w, struct pq_leaf *leaf, const struct pq_element *a)
{
    switch (a->logical) {
    case PQ_LOGICAL_INTEGER:
        return integer_leaf(w, leaf, a);
    case PQ_LOGICAL_DECIMAL:
        return decimal_leaf(w, leaf, a);
    case PQ_LOGICAL_DATE:
        return leaf->physical == PQ_INT32 && set_type(w, leaf, PQ_COPY, "Date32");
    case PQ_LOGICAL_TIME:
    case PQ_LOGICAL_TIMESTAMP:
        return time_leaf(w, leaf, a);
    case PQ_LOGICAL_UUID:
        return leaf->physical == PQ_FIXED && leaf->width == 16 && set_type(w, leaf, PQ_COPY, "UUID");
    case PQ_LOGICAL_FLOAT16:
        return leaf->physical == PQ_FIXED && leaf->width == 2 && set_type(w, leaf, PQ_HALF, "Float32");
    case PQ_LOGICAL_STRING:
        return leaf->physical == PQ_BYTE_ARRAY && plain_leaf(w, leaf);
    default: /* what we do not know says nothing about the bytes */
        return plain_leaf(w, leaf);
    }
}

static uint32_t width_of(const struct pq_element *e)
{
    static const uint8_t widths[] = {
        [PQ_INT32] = 4, [PQ_INT64] = 8, [PQ_INT96] = 12, [PQ_FLOAT] = 4, [PQ_DOUBLE] = 8, [PQ_FIXED] = 0
    };
    return e->type == PQ_FIXED ? (uint32_t)e->type_length : widths[e->type];
}

static bool walk_leaf(struct walk *w)
{
    const struct pq_element *e = &w->elements[w->at];
    struct pq_element annotation = annotation_of(e);
    struct pq_leaf *leaf = &w->leaves[w->leaves_count++];
    *leaf = (struct pq_leaf){ .column = w->column,
                              .element = w->at++,
                              .path_count = w->path_count,
                              .lists_count = w->lists_count,
                              .max_def = w->def,
                              .max_rep = w->lists_count,
                              .physical = (enum pq_physical)e->type,
                              .width = width_of(e) };
    memcpy(leaf->path, w->path, w->path_count);
    memcpy(leaf->list_def, w->list_def, w->lists_count);
    unsigned present = w->lists_count == 0 ? 0 : w->list_def[w->lists_count - 1];
    bool nullable = !w->key && (w->def > present || annotation.logical == PQ_LOGICAL_UNKNOWN);
    if (nullable)
        strbuf_add_text(&w->text, "Nullable(");
    if (!annotated_leaf(w, leaf, &annotation))
        return err_set(w->err, ERR_CORRUPTED_DATA,
                       "Parquet file: the annotation of " STR_FMT " does not fit its physical type",
                       STR_ARG(str_sub(e->name, 0, 64)));
    if (nullable)
        strbuf_add_char(&w->text, ')');
    return true;
}

/* ---- groups ---- */

static bool walk_field(struct walk *w);

static bool is_leaf(const struct pq_element *e)
{
    return e->type >= 0;
}

static bool enter(struct walk *w, size_t child)
{
    if (child > UINT8_MAX)
        return refuse(w, "a group of more than 256 fields");
    if (w->path_count == PQ_DEPTH_MAX)
        return refuse(w, "columns nested too deep");
    w->path[w->path_count++] = (uint8_t)child;
    return true;
}

static bool walk_child(struct walk *w, size_t child)
{
    if (!enter(w, child) || !walk_field(w))
        return false;
    w->path_count--;
    return true;
}

/* Below the schema's own group the depth of lists is bounded by that of elements. */
static void enter_repeated(struct walk *w)
{
    w->def++;
    w->list_def[w->lists_count++] = (uint8_t)w->def;
}

static void leave_repeated(struct walk *w)
{
    w->def--;
    w->lists_count--;
}

/* Names that a Tuple cannot have leave it without any. */
static bool names_usable(const struct str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i].len == 0 || str_is(names[i], "null"))
            return false;
        for (size_t j = 0; j < i; j++)
            if (str_eq(names[i], names[j]))
                return false;
    }
    return true;
}

/* The element behind the subtree at `at`. */
static size_t behind(const struct pq_element *elements, size_t at)
{
    for (size_t left = 1; left > 0; at++)
        left += (is_leaf(&elements[at]) ? 0 : (size_t)elements[at].children) - 1;
    return at;
}

static bool walk_tuple(struct walk *w)
{
    struct str names[UINT8_MAX + 1];
    size_t count = (size_t)w->elements[w->at].children;
    if (count > ARRAY_COUNT(names))
        return refuse(w, "a group of more than 256 fields");
    size_t next = ++w->at;
    for (size_t i = 0; i < count; i++, next = behind(w->elements, next))
        names[i] = w->elements[next].name;
    bool named = names_usable(names, count);
    strbuf_add_text(&w->text, "Tuple(");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            strbuf_add_text(&w->text, ", ");
        if (named) {
            lexer_print_name(&w->text, names[i]);
            strbuf_add_char(&w->text, ' ');
        }
        if (!walk_child(w, i))
            return false;
    }
    strbuf_add_char(&w->text, ')');
    return true;
}

static bool walk_body(struct walk *w);

/* An Array whose elements are what the next element is, as it stands there repeated. */
static bool walk_repeated(struct walk *w)
{
    strbuf_add_text(&w->text, "Array(");
    enter_repeated(w);
    if (!enter(w, 0) || !walk_body(w))
        return false;
    w->path_count--;
    leave_repeated(w);
    strbuf_add_char(&w->text, ')');
    return true;
}

/* Does the repeated group below a LIST stand for the element itself? The format's rules for lists of older writers. */
static bool is_two_level(const struct pq_element *list, const struct pq_element *repeated)
{
    if (is_leaf(repeated) || repeated->children != 1 || repeated[1].repetition == PQ_REPEATED ||
        str_is(repeated->name, "array"))
        return true;
    struct str name = repeated->name, suffix = STR("_tuple");
    return name.len == list->name.len + suffix.len && str_starts(name, list->name) &&
           str_eq(str_from(name, list->name.len), suffix);
}

static bool walk_list(struct walk *w)
{
    const struct pq_element *list = &w->elements[w->at++];
    if (is_two_level(list, &w->elements[w->at]))
        return walk_repeated(w);
    w->at++;
    strbuf_add_text(&w->text, "Array(");
    enter_repeated(w);
    if (!walk_child(w, 0))
        return false;
    leave_repeated(w);
    strbuf_add_char(&w->text, ')');
    return true;
}

/* The key is a plain value; a NULL in its place reads as the type's zero. */
static bool walk_key(struct walk *w)
{
    const struct pq_element *key = &w->elements[w->at];
    if (!is_leaf(key) || key->repetition == PQ_REPEATED)
        return refuse(w, "a map whose keys are no plain values");
    w->key = true;
    bool ok = walk_child(w, 0);
    w->key = false;
    return ok;
}

static bool walk_map(struct walk *w)
{
    bool has_value = w->elements[w->at + 1].children == 2;
    w->at += 2;
    strbuf_add_text(&w->text, has_value ? "Map(" : "Array(");
    enter_repeated(w);
    if (!walk_key(w))
        return false;
    if (has_value) {
        strbuf_add_text(&w->text, ", ");
        if (!walk_child(w, 1))
            return false;
    }
    leave_repeated(w);
    strbuf_add_char(&w->text, ')');
    return true;
}

static bool is_annotated(const struct pq_element *e, int logical, int converted)
{
    return e->logical == logical || (e->logical == PQ_LOGICAL_NONE && e->converted == converted);
}

/* What an element is, its own repetition left aside. Annotations on groups of another shape mean nothing. */
static bool walk_body(struct walk *w)
{
    const struct pq_element *e = &w->elements[w->at];
    if (is_leaf(e))
        return walk_leaf(w);
    bool holds_repeated = e->children == 1 && e[1].repetition == PQ_REPEATED;
    if (holds_repeated && is_annotated(e, PQ_LOGICAL_LIST, PQ_LIST))
        return walk_list(w);
    bool map = is_annotated(e, PQ_LOGICAL_MAP, PQ_MAP) || is_annotated(e, PQ_LOGICAL_MAP, PQ_MAP_KEY_VALUE);
    if (holds_repeated && map && !is_leaf(&e[1]) && e[1].children <= 2)
        return walk_map(w);
    return walk_tuple(w);
}

static bool walk_field(struct walk *w)
{
    int32_t repetition = w->elements[w->at].repetition;
    if (repetition == PQ_REPEATED)
        return walk_repeated(w);
    w->def += repetition == PQ_OPTIONAL;
    bool ok = walk_body(w);
    w->def -= repetition == PQ_OPTIONAL;
    return ok;
}

/* ---- columns ---- */

static const struct type *type_at(const struct type *type, const struct pq_leaf *leaf)
{
    for (unsigned i = 0; i < leaf->path_count; i++)
        type = type->children[leaf->path[i]];
    return type;
}

static bool walk_column(struct walk *w, struct schema_column *column)
{
    size_t first = w->leaves_count;
    struct err why;
    column->name = arena_dup(w->arena, w->elements[w->at].name);
    strbuf_clear(&w->text);
    if (!walk_field(w))
        return false;
    if (!strbuf_ok(&w->text))
        return refuse(w, "a column's type is too long");
    if (!type_parse(arena_dup(w->arena, strbuf_view(&w->text)), w->arena, &column->type, &why))
        return err_set(w->err, ERR_NOT_IMPLEMENTED, "Parquet file: column " STR_FMT ": %s",
                       STR_ARG(str_sub(column->name, 0, 64)), why.text);
    for (size_t i = first; i < w->leaves_count; i++)
        w->leaves[i].type = type_at(column->type, &w->leaves[i]);
    return true;
}

static size_t count_leaves(const struct pq_element *elements, size_t count)
{
    size_t leaves = 0;
    for (size_t i = 1; i < count; i++)
        leaves += is_leaf(&elements[i]);
    return leaves;
}

bool pq_schema_infer(const struct pq_element *elements, size_t elements_count, struct arena *arena,
                     struct schema **schema, struct pq_schema *out, struct err *err)
{
    size_t count = (size_t)elements[0].children, leaves = count_leaves(elements, elements_count);
    struct walk w = { .elements = elements, .at = 1, .arena = arena_new(4 << 10), .err = err };
    struct schema_column *columns = ARENA_ARRAY(w.arena, struct schema_column, count + 1);
    size_t *column_leaf = ARENA_ARRAY(arena, size_t, count + 1);
    bool ok = true;
    strbuf_init(&w.text, TYPE_TEXT_MAX);
    w.leaves = ARENA_ARRAY(arena, struct pq_leaf, leaves + 1);
    for (; ok && w.column < count; w.column++) {
        column_leaf[w.column] = w.leaves_count;
        ok = walk_column(&w, &columns[w.column]);
    }
    column_leaf[count] = w.leaves_count;
    strbuf_fini(&w.text);
    if (!ok) {
        arena_free(w.arena);
        return false;
    }
    *schema = schema_new(w.arena, columns, count, 0);
    *out = (struct pq_schema){ .leaves = w.leaves, .leaves_count = w.leaves_count, .column_leaf = column_leaf };
    return true;
}
