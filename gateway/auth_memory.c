/* auth_memory.c: see auth_memory.h. Two tables of sets with four places each; a digest says which set. */
#include "gateway/auth_memory.h"

#include <gnutls/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/must.h"
#include "base/strbuf.h"
#include "base/sync.h"

enum { DIGEST_BYTES = 32, WAYS = 4, KNOWN_SETS = 2500, FAILING_SETS = 1024 };
#define KNOWN_NS (5 * 60 * NS_PER_S)
#define FAILING_NS (60 * NS_PER_S)

struct place {
    unsigned char digest[DIGEST_BYTES];
    uint64_t until_ns; /* 0: nobody's */
    uint64_t failures;
};

struct auth_memory {
    unsigned char key[DIGEST_BYTES];
    struct mutex lock; /* LOCK_CACHE; guards what follows */
    struct place known[KNOWN_SETS][WAYS];
    struct place failing[FAILING_SETS][WAYS];
};

struct auth_memory *auth_memory_new(void)
{
    struct auth_memory *memory = NEW(struct auth_memory);
    must(gnutls_rnd(GNUTLS_RND_KEY, memory->key, sizeof(memory->key)) == 0);
    mutex_init(&memory->lock, LOCK_CACHE);
    return memory;
}

void auth_memory_free(struct auth_memory *memory)
{
    if (memory == NULL)
        return;
    mutex_fini(&memory->lock);
    gnutls_memset(memory, 0, sizeof(*memory));
    free(memory);
}

/* Of both texts, wherever the border between them is. */
static void digest_of(const struct auth_memory *memory, char kind, struct str a, struct str b,
                      unsigned char digest[DIGEST_BYTES])
{
    struct strbuf text = { 0 };
    strbuf_add_char(&text, kind);
    strbuf_add_u64(&text, a.len);
    strbuf_add_char(&text, ':');
    strbuf_add(&text, a);
    strbuf_add(&text, b);
    must(gnutls_hmac_fast(GNUTLS_MAC_SHA256, memory->key, sizeof(memory->key), text.data, text.len, digest) == 0);
    gnutls_memset(text.data, 0, text.len);
    strbuf_fini(&text);
}

static size_t set_of(const unsigned char digest[DIGEST_BYTES], size_t sets)
{
    uint64_t number;
    memcpy(&number, digest, sizeof(number));
    return (size_t)(number % sets);
}

/* NULL: it is not there, or its time is over. */
static struct place *find(struct place set[WAYS], const unsigned char digest[DIGEST_BYTES], uint64_t now_ns)
{
    for (size_t i = 0; i < WAYS; i++)
        if (set[i].until_ns > now_ns && gnutls_memcmp(set[i].digest, digest, DIGEST_BYTES) == 0)
            return &set[i];
    return NULL;
}

/* Of those in the set the one whose time is over, else that has failed least, else that ends first. */
static struct place *take_place(struct place set[WAYS], const unsigned char digest[DIGEST_BYTES], uint64_t now_ns)
{
    struct place *worst = &set[0];
    for (size_t i = 1; i < WAYS && worst->until_ns > now_ns; i++)
        if (set[i].until_ns <= now_ns || set[i].failures < worst->failures ||
            (set[i].failures == worst->failures && set[i].until_ns < worst->until_ns))
            worst = &set[i];
    *worst = (struct place){ 0 };
    memcpy(worst->digest, digest, DIGEST_BYTES);
    return worst;
}

bool auth_memory_knows(struct auth_memory *memory, const struct auth_sender *sender, uint64_t now_ns)
{
    unsigned char digest[DIGEST_BYTES];
    digest_of(memory, 'k', sender->name, sender->password, digest);
    mutex_lock(&memory->lock);
    bool known = find(memory->known[set_of(digest, KNOWN_SETS)], digest, now_ns) != NULL;
    mutex_unlock(&memory->lock);
    return known;
}

void auth_memory_learn(struct auth_memory *memory, const struct auth_sender *sender, uint64_t now_ns)
{
    unsigned char digest[DIGEST_BYTES];
    digest_of(memory, 'k', sender->name, sender->password, digest);
    mutex_lock(&memory->lock);
    struct place *set = memory->known[set_of(digest, KNOWN_SETS)], *place = find(set, digest, now_ns);
    if (place == NULL)
        place = take_place(set, digest, now_ns);
    place->until_ns = now_ns + KNOWN_NS;
    mutex_unlock(&memory->lock);
}

/* The allowances that a failure is charged to. */
struct charge {
    unsigned char digest[DIGEST_BYTES];
    uint64_t max;
};
enum { CHARGES = 3 };

static size_t charges_of(const struct auth_memory *memory, const struct auth_sender *sender,
                         struct charge charges[CHARGES])
{
    digest_of(memory, 'b', sender->name, sender->address, charges[0].digest);
    charges[0].max = AUTH_FAILURES_MAX;
    digest_of(memory, 'u', sender->name, STR_EMPTY, charges[1].digest);
    charges[1].max = 10 * AUTH_FAILURES_MAX;
    digest_of(memory, 'a', STR_EMPTY, sender->address, charges[2].digest);
    charges[2].max = 10 * AUTH_FAILURES_MAX;
    return sender->loopback ? CHARGES - 1 : CHARGES;
}

bool auth_memory_allows(struct auth_memory *memory, const struct auth_sender *sender, uint64_t now_ns)
{
    struct charge charges[CHARGES];
    size_t count = charges_of(memory, sender, charges);
    bool allowed = true;
    mutex_lock(&memory->lock);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *digest = charges[i].digest;
        const struct place *place = find(memory->failing[set_of(digest, FAILING_SETS)], digest, now_ns);
        allowed = allowed && (place == NULL || place->failures < charges[i].max);
    }
    mutex_unlock(&memory->lock);
    return allowed;
}

void auth_memory_count_failure(struct auth_memory *memory, const struct auth_sender *sender, uint64_t now_ns)
{
    struct charge charges[CHARGES];
    size_t count = charges_of(memory, sender, charges);
    mutex_lock(&memory->lock);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *digest = charges[i].digest;
        struct place *set = memory->failing[set_of(digest, FAILING_SETS)], *place = find(set, digest, now_ns);
        if (place == NULL) {
            place = take_place(set, digest, now_ns);
            place->until_ns = now_ns + FAILING_NS;
        }
        place->failures++;
    }
    mutex_unlock(&memory->lock);
}
