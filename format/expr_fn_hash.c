/* expr_fn_hash.c: hashes. Of several arguments: the hash of the hashes, as the engine folds them. */
#include <gnutls/crypto.h>
#include <xxhash.h>

#include "base/must.h"
#include "format/cityhash102.h"
#include "format/expr_impl.h"
#include "format/sql_types.h"

/* ---- SipHash-2-4 with a key of zeros ---- */

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotated(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_rounds(struct sip *s, unsigned rounds)
{
    while (rounds-- > 0) {
        s->v0 += s->v1;
        s->v1 = rotated(s->v1, 13) ^ s->v0;
        s->v0 = rotated(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotated(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotated(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotated(s->v1, 17) ^ s->v2;
        s->v2 = rotated(s->v2, 32);
    }
}

static void sip_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_rounds(s, 2);
    s->v0 ^= word;
}

static uint64_t siphash(struct str bytes)
{
    struct sip s = { 0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573 };
    uint64_t word, last = (uint64_t)bytes.len << 56;
    size_t at = 0;
    for (; bytes.len - at >= sizeof word; at += sizeof word) {
        memcpy(&word, bytes.data + at, sizeof word);
        sip_word(&s, word);
    }
    for (size_t i = at; i < bytes.len; i++)
        last |= (uint64_t)(uint8_t)bytes.data[i] << (8 * (i - at));
    sip_word(&s, last);
    s.v2 ^= 0xff;
    sip_rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* ---- values ---- */

bool bind_hash(struct binder *b, struct node *node)
{
    for (size_t i = 0; i < node->args_count; i++) {
        const struct type *type = bind_plain(b, node, i);
        if (type->children_count > 0 || type->kind == TYPE_UUID || type->kind == TYPE_IPV6)
            return err_set(b->err, ERR_NOT_IMPLEMENTED, "%s of " STR_FMT, node->function->name, STR_ARG(type->text));
    }
    node->type = type_of_kind(TYPE_UINT64);
    return true;
}

static uint64_t mixed(uint64_t x)
{
    x ^= 0x4cf2d2baae6da887;
    x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
    return x ^ x >> 33;
}

static uint64_t hash_bytes(int op, struct str bytes)
{
    return op == 'c' ? cityhash64_v102(bytes) : op == 'x' ? XXH64(bytes.data, bytes.len, 0) : siphash(bytes);
}

static uint64_t hash_value(int op, const struct value *v)
{
    float f = (float)v->d;
    uint64_t cell = v->u;
    size_t width = type_width(v->type);
    if (v->class == VALUE_TEXT)
        return hash_bytes(op, v->s);
    if (v->class == VALUE_WIDE || v->type->kind == TYPE_DATETIME64)
        return hash_bytes(op, str_make(&v->wide, width)); /* little-endian, as all numbers */
    if (v->type->kind == TYPE_FLOAT32)
        memcpy(&cell, &f, sizeof f);
    if (width < sizeof cell)
        cell &= (UINT64_C(1) << 8 * width) - 1;
    return op == 'c' ? mixed(cell) : hash_bytes(op, str_make(&cell, width));
}

bool call_hash(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    uint64_t hash = hash_value(node->op, &args[0]);
    (void)e;
    for (size_t i = 1; i < node->args_count; i++) {
        uint64_t both[2] = { hash, hash_value(node->op, &args[i]) };
        hash = node->op == 's' ? siphash(str_make(both, sizeof both)) : cityhash_combine(both[0], both[1]);
    }
    *out = value_uint(node->result, hash);
    return true;
}

/* ---- digests ---- */

/* op: its bytes, which tell the algorithm */
bool bind_digest(struct binder *b, struct node *node)
{
    node->type = sql_type_make(b->arena, "FixedString(%d)", node->op);
    return true;
}

bool call_digest(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    static const gnutls_digest_algorithm_t algorithms[] = { GNUTLS_DIG_MD5,    GNUTLS_DIG_SHA1,   GNUTLS_DIG_SHA224,
                                                            GNUTLS_DIG_SHA256, GNUTLS_DIG_SHA384, GNUTLS_DIG_SHA512 };
    struct column *digest = eval_temp(e, node->result);
    char bytes[64];
    size_t i = 0;
    while (gnutls_hash_get_len(algorithms[i]) != (unsigned)node->op)
        i++;
    if (gnutls_hash_fast(algorithms[i], args[0].s.data, args[0].s.len, bytes) < 0)
        return err_set(e->err, ERR_NOT_IMPLEMENTED, "%s is switched off on this machine", node->function->name);
    column_push_fixed(digest, bytes);
    *out = value_load(digest, 0);
    return true;
}
