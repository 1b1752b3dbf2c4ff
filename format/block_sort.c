/* block_sort.c: the order of a block's rows.
 *
 * The key columns are packed, one after the other, into 128 bits per row: numbers as their distance from the column's
 * smallest, in as many bits as the largest needs; strings as ranks where they repeat, else as their first bytes. Rows
 * are then sorted by these bits, byte by byte from the lowest (radix, stable), passing over bytes that are the same
 * everywhere. Only where the bits did not hold the whole key are rows with equal bits compared by their columns. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "format/block.h"
#include "format/block_cells.h"

enum {
    KEY_BITS = 128,
    INSERTION_MAX = 48,     /* rows; below, insertion beats radix */
    RANKS_MAX = 1 << 16,    /* distinct strings of a column worth ranking */
    RANKS_TRIAL = 1024,     /* after so many rows it must be plain that strings repeat */
    RANKS_REPEAT_LEAST = 2, /* times, on average */
    SLOTS_MIN = 1024
};

struct packing {
    uint64_t *low, *high; /* of each row; high is NULL while 64 bits are enough */
    size_t rows;
    unsigned bits; /* used of KEY_BITS */
    bool whole;    /* the bits hold all of the keys so far */
    size_t packed; /* keys that are wholly in the bits */
};

static unsigned bits_of(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

/* Makes room at the low end of each row's bits and puts the values there, less their lowest `drop` bits. */
static void push_bits(struct packing *p, const uint64_t *values, unsigned drop, unsigned bits)
{
    if (bits == 0)
        return;
    if (p->bits + bits > 64 && p->high == NULL)
        p->high = mem_zalloc(p->rows * sizeof(p->high[0]));
    for (size_t i = 0; i < p->rows && p->high != NULL; i++)
        p->high[i] = bits == 64 ? p->low[i] : p->high[i] << bits | p->low[i] >> (64 - bits);
    for (size_t i = 0; i < p->rows; i++)
        p->low[i] = (bits == 64 ? 0 : p->low[i] << bits) | values[i] >> drop;
    p->bits += bits;
}

/* Pushes values (in row order) as `bits` wide numbers, or as many of their upper bits as there is room for. */
static void pack_values(struct packing *p, const uint64_t *values, unsigned bits)
{
    unsigned room = KEY_BITS - p->bits;
    if (bits <= room) {
        push_bits(p, values, 0, bits);
        return;
    }
    p->whole = false;
    if (room > 0)
        push_bits(p, values, bits - room, room);
}

/* ---- numbers ---- */

static uint64_t big_endian(const uint8_t *bytes, size_t count)
{
    uint64_t v = 0;
    for (size_t i = 0; i < count; i++)
        v = v << 8 | bytes[i];
    return v;
}

#define FILL_AS(kind, flip)                                                                                            \
    for (size_t i = 0; i < c->rows; i++) {                                                                             \
        kind v;                                                                                                        \
        memcpy(&v, c->data + i * sizeof(v), sizeof(v));                                                                \
        out[i] = (uint64_t)(v ^ (kind)(flip));                                                                         \
    }

static void fill_integers(const struct column *c, uint64_t *out)
{
    uint64_t sign = type_is_signed(c->type) ? 1 : 0;
    switch (c->width) {
    case 1:
        FILL_AS(uint8_t, sign << 7)
        return;
    case 2:
        FILL_AS(uint16_t, sign << 15)
        return;
    case 4:
        FILL_AS(uint32_t, sign << 31)
        return;
    default:
        FILL_AS(uint64_t, sign << 63)
    }
}
#undef FILL_AS

/* How many 64-bit words, compared one after the other, order this column's cells; 0: it has to be compared. */
static size_t words_count(const struct column *c)
{
    switch (c->type->kind) {
    case TYPE_STRING:
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_TUPLE:
    case TYPE_NESTED:
        return 0;
    case TYPE_FIXED_STRING:
        return c->width <= 8 ? 1 : 0;
    default:
        return (c->width + 7) / 8;
    }
}

static void fill_words(const struct column *c, size_t word, uint64_t *out)
{
    switch (c->type->kind) {
    case TYPE_BFLOAT16:
        for (size_t i = 0; i < c->rows; i++)
            out[i] = cell_bf16_order(c->data + i * 2);
        return;
    case TYPE_FLOAT32:
        for (size_t i = 0; i < c->rows; i++)
            out[i] = cell_f32_order(c->data + i * 4);
        return;
    case TYPE_FLOAT64:
        for (size_t i = 0; i < c->rows; i++)
            out[i] = cell_f64_order(c->data + i * 8);
        return;
    case TYPE_FIXED_STRING:
        for (size_t i = 0; i < c->rows; i++)
            out[i] = big_endian(c->data + i * c->width, c->width);
        return;
    case TYPE_IPV6:
        for (size_t i = 0; i < c->rows; i++)
            out[i] = big_endian(c->data + i * 16 + word * 8, 8);
        return;
    case TYPE_UUID: /* the second half first, see column_compare() */
        for (size_t i = 0; i < c->rows; i++)
            out[i] = big_endian(c->data + i * 16 + (1 - word) * 8, 8);
        return;
    default:
        break;
    }
    if (c->width <= 8) {
        fill_integers(c, out);
        return;
    }
    uint64_t sign = word == 0 && type_is_signed(c->type) ? UINT64_C(1) << 63 : 0;
    for (size_t i = 0; i < c->rows; i++)
        out[i] = cell_u64(c->data + (i + 1) * c->width - (word + 1) * 8) ^ sign;
}

/* NULL cells are all the same: 0, told apart by the bit of pack_nulls(). Returns the bits that the values need. */
static unsigned make_distances(const struct column *c, uint64_t *values)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < c->rows; i++) {
        if (column_is_null(c, i))
            continue;
        least = MIN(least, values[i]);
        most = MAX(most, values[i]);
    }
    if (least > most) /* NULL everywhere */
        least = most;
    for (size_t i = 0; i < c->rows; i++)
        values[i] = column_is_null(c, i) ? 0 : values[i] - least;
    return bits_of(most - least);
}

static void pack_nulls(struct packing *p, const struct column *c, uint64_t *values)
{
    if (c->nulls == NULL)
        return;
    for (size_t i = 0; i < p->rows; i++)
        values[i] = c->nulls[i] != 0;
    pack_values(p, values, 1);
}

/* ---- strings ---- */

struct slot {
    uint64_t hash;
    uint32_t code; /* 1 + index into the distinct strings; 0: free */
};

struct ranking {
    const struct column *column;
    struct slot *slots;
    size_t slots_count; /* a power of two */
    uint32_t *firsts;   /* the row in which each distinct string stands first */
    size_t count, cap;
};

static void ranking_fini(struct ranking *r)
{
    free(r->slots);
    free(r->firsts);
}

static void ranking_grow(struct ranking *r)
{
    struct slot *old = r->slots;
    size_t old_count = r->slots_count;
    r->slots_count = old_count == 0 ? SLOTS_MIN : old_count * 2;
    r->slots = mem_zalloc(r->slots_count * sizeof(r->slots[0]));
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].code == 0)
            continue;
        size_t at = old[i].hash & (r->slots_count - 1);
        while (r->slots[at].code != 0)
            at = (at + 1) & (r->slots_count - 1);
        r->slots[at] = old[i];
    }
    free(old);
}

static uint32_t ranking_code(struct ranking *r, uint32_t row)
{
    if ((r->count + 1) * 2 > r->slots_count)
        ranking_grow(r);
    struct str s = column_str(r->column, row);
    uint64_t hash = hash64(s);
    size_t at = hash & (r->slots_count - 1);
    for (; r->slots[at].code != 0; at = (at + 1) & (r->slots_count - 1)) {
        uint32_t code = r->slots[at].code - 1;
        if (r->slots[at].hash == hash && str_eq(column_str(r->column, r->firsts[code]), s))
            return code;
    }
    if (r->count == r->cap) {
        r->cap = r->cap == 0 ? SLOTS_MIN : r->cap * 2;
        r->firsts = mem_realloc(r->firsts, r->cap * sizeof(r->firsts[0]));
    }
    r->firsts[r->count++] = row;
    r->slots[at] = (struct slot){ hash, (uint32_t)r->count };
    return (uint32_t)r->count - 1;
}

struct ranked {
    struct str text;
    uint32_t code;
};

static int compare_ranked(const void *a, const void *b)
{
    return str_cmp(((const struct ranked *)a)->text, ((const struct ranked *)b)->text);
}

/* From codes in order of appearance to ranks in order of bytes. */
static void codes_to_ranks(const struct ranking *r, uint64_t *values)
{
    struct ranked *sorted = mem_alloc(r->count * sizeof(sorted[0]));
    uint32_t *rank = mem_alloc(r->count * sizeof(rank[0]));
    for (size_t i = 0; i < r->count; i++)
        sorted[i] = (struct ranked){ column_str(r->column, r->firsts[i]), (uint32_t)i };
    qsort(sorted, r->count, sizeof(sorted[0]), compare_ranked);
    for (size_t i = 0; i < r->count; i++)
        rank[sorted[i].code] = (uint32_t)i;
    for (size_t i = 0; i < r->column->rows; i++)
        values[i] = column_is_null(r->column, i) ? 0 : rank[values[i]];
    free(rank);
    free(sorted);
}

/* False where strings hardly repeat. */
static bool rank_strings(const struct column *c, uint64_t *values, unsigned *bits)
{
    struct ranking r = { .column = c };
    bool ok = true;
    size_t before = SIZE_MAX; /* the row before, if it was not NULL */
    for (size_t i = 0; i < c->rows && ok; i++) {
        if (column_is_null(c, i))
            continue;
        if (before != SIZE_MAX && str_eq(column_str(c, before), column_str(c, i)))
            values[i] = values[before];
        else
            values[i] = ranking_code(&r, (uint32_t)i);
        before = i;
        ok = r.count <= RANKS_MAX && (i < RANKS_TRIAL || r.count * RANKS_REPEAT_LEAST <= i);
    }
    if (ok && r.count > 0) {
        codes_to_ranks(&r, values);
        *bits = bits_of(r.count - 1);
    } else if (ok) { /* NULL everywhere */
        memset(values, 0, c->rows * sizeof(values[0]));
        *bits = 0;
    }
    ranking_fini(&r);
    return ok;
}

/* How many bytes all of the column's strings begin with. */
static size_t shared_prefix(const struct column *c)
{
    struct str shared = { NULL, 0 };
    for (size_t i = 0; i < c->rows && (shared.data == NULL || shared.len > 0); i++) {
        if (column_is_null(c, i))
            continue;
        struct str s = column_str(c, i);
        if (shared.data == NULL)
            shared = s;
        size_t same = 0, most = MIN(shared.len, s.len);
        while (same < most && shared.data[same] == s.data[same])
            same++;
        shared.len = same;
    }
    return shared.len;
}

static void fill_prefixes(const struct column *c, uint64_t *values)
{
    size_t skip = shared_prefix(c);
    for (size_t i = 0; i < c->rows; i++) {
        values[i] = 0;
        if (column_is_null(c, i))
            continue;
        struct str s = str_from(column_str(c, i), skip);
        uint8_t bytes[8] = { 0 };
        memcpy(bytes, s.data, MIN(s.len, sizeof(bytes)));
        values[i] = big_endian(bytes, sizeof(bytes));
    }
}

static void pack_strings(struct packing *p, const struct column *c, uint64_t *values)
{
    unsigned bits = 0;
    pack_nulls(p, c, values);
    if (rank_strings(c, values, &bits)) {
        pack_values(p, values, bits);
        return;
    }
    fill_prefixes(c, values);
    pack_values(p, values, 64);
    p->whole = false;
}

/* ---- packing ---- */

static void pack_column(struct packing *p, const struct column *c, uint64_t *values)
{
    if (c->type->kind == TYPE_STRING || (c->type->kind == TYPE_FIXED_STRING && c->width > 8)) {
        pack_strings(p, c, values);
        return;
    }
    size_t words = words_count(c);
    if (words == 0) {
        p->whole = false;
        return;
    }
    pack_nulls(p, c, values);
    for (size_t word = 0; word < words && p->whole; word++) {
        fill_words(c, word, values);
        unsigned bits = make_distances(c, values);
        pack_values(p, values, bits);
    }
}

static void pack_keys(struct packing *p, const struct block *b, const size_t *keys, size_t keys_count)
{
    uint64_t *values = mem_alloc(b->rows * sizeof(values[0]));
    p->whole = true;
    while (p->packed < keys_count && p->whole) {
        pack_column(p, &b->columns[keys[p->packed]], values);
        p->packed += p->whole;
    }
    free(values);
}

/* ---- sorting ---- */

static inline bool packed_less(const struct packing *p, size_t a, size_t b)
{
    if (p->high != NULL && p->high[a] != p->high[b])
        return p->high[a] < p->high[b];
    return p->low[a] < p->low[b];
}

static bool is_sorted(const struct packing *p)
{
    for (size_t i = 1; i < p->rows; i++)
        if (packed_less(p, i, i - 1))
            return false;
    return true;
}

static void insertion_sort(const struct packing *p, uint32_t *rows)
{
    for (uint32_t i = 1; i < p->rows; i++) {
        size_t at = i;
        for (; at > 0 && packed_less(p, i, rows[at - 1]); at--)
            rows[at] = rows[at - 1];
        rows[at] = i;
    }
}

/* One pass over 8 bits of the key: where each value's run starts; false when all rows have the same. */
static bool count_starts(uint32_t starts[256], uint32_t first, size_t rows)
{
    uint32_t sum = 0;
    if (starts[first] == rows)
        return false;
    for (unsigned v = 0; v < 256; v++) {
        uint32_t here = starts[v];
        starts[v] = sum;
        sum += here;
    }
    return true;
}

/* Key and row in one word each, the row below: the common case, a third of the memory to move. */
static void radix_words(const struct packing *p, unsigned row_bits, uint32_t *rows)
{
    uint64_t *from = mem_alloc(p->rows * sizeof(from[0])), *to = mem_alloc(p->rows * sizeof(to[0]));
    for (size_t i = 0; i < p->rows; i++)
        from[i] = p->low[i] << row_bits | i;
    for (unsigned shift = row_bits; shift < row_bits + p->bits; shift += 8) {
        uint32_t starts[256] = { 0 };
        for (size_t i = 0; i < p->rows; i++)
            starts[from[i] >> shift & 0xff]++;
        if (!count_starts(starts, (uint32_t)(from[0] >> shift & 0xff), p->rows))
            continue;
        for (size_t i = 0; i < p->rows; i++)
            to[starts[from[i] >> shift & 0xff]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    uint64_t row_mask = (UINT64_C(1) << row_bits) - 1;
    for (size_t i = 0; i < p->rows; i++)
        rows[i] = (uint32_t)(from[i] & row_mask);
    free(from);
    free(to);
}

struct item {
    uint64_t high, low;
    uint32_t row;
};

static inline unsigned item_byte(const struct item *item, unsigned byte)
{
    return (unsigned)((byte < 8 ? item->low >> (byte * 8) : item->high >> ((byte - 8) * 8)) & 0xff);
}

static void radix_items(const struct packing *p, uint32_t *rows)
{
    struct item *from = mem_alloc(p->rows * sizeof(from[0])), *to = mem_alloc(p->rows * sizeof(to[0]));
    for (size_t i = 0; i < p->rows; i++)
        from[i] = (struct item){ p->high == NULL ? 0 : p->high[i], p->low[i], (uint32_t)i };
    for (unsigned byte = 0; byte < (p->bits + 7) / 8; byte++) {
        uint32_t starts[256] = { 0 };
        for (size_t i = 0; i < p->rows; i++)
            starts[item_byte(&from[i], byte)]++;
        if (!count_starts(starts, item_byte(&from[0], byte), p->rows))
            continue;
        for (size_t i = 0; i < p->rows; i++)
            to[starts[item_byte(&from[i], byte)]++] = from[i];
        struct item *swap = from;
        from = to;
        to = swap;
    }
    for (size_t i = 0; i < p->rows; i++)
        rows[i] = from[i].row;
    free(from);
    free(to);
}

/* By the packed bits alone; equal ones stay in their order. */
static void sort_packed(const struct packing *p, uint32_t *rows)
{
    unsigned row_bits = bits_of(p->rows - 1);
    for (size_t i = 0; i < p->rows; i++)
        rows[i] = (uint32_t)i;
    if (is_sorted(p))
        return;
    if (p->rows <= INSERTION_MAX)
        insertion_sort(p, rows);
    else if (p->bits + row_bits <= 64)
        radix_words(p, row_bits, rows);
    else
        radix_items(p, rows);
}

/* ---- ties ---- */

struct ties {
    const struct block *block;
    const size_t *keys;
    size_t keys_count;
    uint32_t *spare;
};

static int compare_rows(const struct ties *t, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < t->keys_count; i++) {
        const struct column *c = &t->block->columns[t->keys[i]];
        int order = column_compare(c, a, c, b);
        if (order != 0)
            return order;
    }
    return 0;
}

static void merge_sort(const struct ties *t, uint32_t *rows, size_t count)
{
    if (count < 8) {
        for (size_t i = 1; i < count; i++) {
            uint32_t moving = rows[i];
            size_t at = i;
            for (; at > 0 && compare_rows(t, moving, rows[at - 1]) < 0; at--)
                rows[at] = rows[at - 1];
            rows[at] = moving;
        }
        return;
    }
    size_t half = count / 2;
    merge_sort(t, rows, half);
    merge_sort(t, rows + half, count - half);
    if (compare_rows(t, rows[half - 1], rows[half]) <= 0)
        return;
    memcpy(t->spare, rows, half * sizeof(rows[0]));
    size_t left = 0, right = half, at = 0;
    while (left < half && right < count)
        rows[at++] = compare_rows(t, t->spare[left], rows[right]) <= 0 ? t->spare[left++] : rows[right++];
    while (left < half)
        rows[at++] = t->spare[left++];
}

static void sort_ties(const struct packing *p, const struct block *b, const size_t *keys, size_t keys_count,
                      uint32_t *rows)
{
    struct ties t = { b, keys + p->packed, keys_count - p->packed, mem_alloc(p->rows * sizeof(rows[0])) };
    for (size_t from = 0, to; from < p->rows; from = to) {
        for (to = from + 1; to < p->rows && !packed_less(p, rows[from], rows[to]); to++)
            ;
        merge_sort(&t, rows + from, to - from);
    }
    free(t.spare);
}

void block_sort(const struct block *b, const size_t *key_columns, size_t keys_count, uint32_t *out)
{
    must(b->rows <= UINT32_MAX);
    if (b->rows == 0)
        return;
    struct packing p = { .low = mem_zalloc(b->rows * sizeof(p.low[0])), .rows = b->rows };
    pack_keys(&p, b, key_columns, keys_count);
    sort_packed(&p, out);
    if (!p.whole)
        sort_ties(&p, b, key_columns, keys_count, out);
    free(p.low);
    free(p.high);
}
