/* auth.c: see auth.h. A password is the SHA-256 of a long random token, or crypt(3)'s hash of something shorter. All
 * comparisons take the same time wherever two digests differ. Where any user has a slow hash, whoever fails waits for
 * one to be computed, so that the time tells nothing about who there is. */
#include "gateway/auth.h"

#include <crypt.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/metric.h"
#include "base/strbuf.h"
#include "base/sync.h"
#include "base/text.h"
#include "config/config.h"
#include "gateway/auth_memory.h"

enum { SHA256_BYTES = 32 };
#define QUOTA_NS (60 * NS_PER_S) /* what quotas are counted by */

struct account {
    const struct config_user *user;
    bool slow;                          /* the password is crypt(3)'s */
    unsigned char digest[SHA256_BYTES]; /* else its SHA-256 */
    uint64_t inserts_ns, bytes_ns;      /* until when the quotas are spoken for; guarded by auth->lock */
};
struct auth {
    struct account *accounts;
    size_t count;
    struct map by_name;          /* struct account */
    bool open;                   /* no users configured */
    const struct account *decoy; /* a slow one; NULL: nobody has one */
    struct auth_memory *memory;
    struct mutex lock; /* LOCK_CACHE */
};

static void sha256(struct str text, unsigned char digest[SHA256_BYTES])
{
    must(gnutls_hash_fast(GNUTLS_DIG_SHA256, text.data, text.len, digest) == 0);
}

static void account_init(struct account *account, const struct config_user *user)
{
    struct str hex = user->password;
    account->user = user;
    account->slow = str_starts(hex, STR("$"));
    if (account->slow || hex.len == 0)
        return;
    struct strbuf digest = { 0 };
    must(str_starts(hex, STR("sha256:"))); /* the configuration is checked */
    must(text_from_hex(str_from(hex, STR("sha256:").len), &digest) && digest.len == SHA256_BYTES);
    memcpy(account->digest, digest.data, SHA256_BYTES);
    strbuf_fini(&digest);
}

struct auth *auth_new(const struct config *config)
{
    static const struct config_user anybody = { .name = { "default", 7 },
                                                .grants = GRANT_INSERT | GRANT_READ | GRANT_ADMIN };
    struct auth *auth = NEW(struct auth);
    auth->open = config->users_count == 0;
    auth->count = auth->open ? 1 : config->users_count;
    auth->accounts = mem_zalloc(auth->count * sizeof(auth->accounts[0]));
    auth->memory = auth_memory_new();
    mutex_init(&auth->lock, LOCK_CACHE);
    for (size_t i = 0; i < auth->count; i++) {
        account_init(&auth->accounts[i], auth->open ? &anybody : &config->users[i]);
        (void)map_put(&auth->by_name, auth->accounts[i].user->name, &auth->accounts[i]);
        if (auth->accounts[i].slow && auth->decoy == NULL)
            auth->decoy = &auth->accounts[i];
    }
    return auth;
}

void auth_free(struct auth *auth)
{
    if (auth == NULL)
        return;
    auth_memory_free(auth->memory);
    mutex_fini(&auth->lock);
    map_fini(&auth->by_name);
    free(auth->accounts);
    free(auth);
}

static struct account *account_of(const struct auth *auth, struct str name)
{
    return map_get(&auth->by_name, name);
}

/* Of an account without a slow hash. NULL: nobody's. */
static bool password_fits(const struct account *account, struct str password)
{
    static const unsigned char nobody[SHA256_BYTES];
    unsigned char digest[SHA256_BYTES];
    sha256(password, digest);
    if (account != NULL && account->user->password.len == 0)
        return password.len == 0 && account->user->certificates.count == 0;
    bool same = gnutls_memcmp(digest, account == NULL ? nobody : account->digest, SHA256_BYTES) == 0;
    return account != NULL && same;
}

void auth_try(struct auth *auth, const struct auth_attempt *attempt, uint64_t now_ns)
{
    const struct account *account = account_of(auth, attempt->name);
    bool mine = account != NULL && account->slow;
    const struct account *hashed = mine ? account : auth->decoy;
    must(hashed != NULL);
    struct strbuf hash = { 0 }, password = { 0 };
    struct crypt_data *work = NEW(struct crypt_data);
    strbuf_add(&hash, hashed->user->password);
    strbuf_add(&password, attempt->password);
    const char *made = crypt_r(strbuf_cstr(&password), strbuf_cstr(&hash), work);
    bool whole = str_find_char(attempt->password, '\0') == STR_NONE; /* crypt reads up to there */
    bool same = made != NULL && strlen(made) == hash.len && gnutls_memcmp(made, hash.data, hash.len) == 0;
    if (mine && whole && same)
        auth_memory_learn(auth->memory, &(struct auth_sender){ attempt->name, attempt->password, STR_EMPTY, false },
                          now_ns);
    gnutls_memset(password.data, 0, password.len);
    gnutls_memset(work, 0, sizeof(*work));
    strbuf_fini(&password);
    strbuf_fini(&hash);
    free(work);
}

static enum auth_answer refuse(struct str name, const char *reason, struct err *err)
{
    struct strbuf shown = { 0 };
    text_add_printable(&shown, name, 64);
    enum err_code code = str_is(name, "default") ? ERR_REQUIRED_PASSWORD : ERR_AUTHENTICATION_FAILED;
    err_set(err, code, "%s: Authentication failed: password is incorrect, or there is no user with such name",
            strbuf_cstr(&shown));
    strbuf_fini(&shown);
    metric_series_add(metric_series1(METRIC_AUTH_FAILURES, str_of(reason)), 1);
    return AUTH_REFUSED;
}

/* "Basic BASE64" -> user and password, which live in arena. */
static bool basic_read(struct str value, struct arena *arena, struct str *user, struct str *password, struct err *err)
{
    struct str scheme, rest = value;
    if (!str_cut(&rest, ' ', &scheme))
        scheme = value;
    if (!str_eq_nocase(scheme, STR("Basic"))) {
        struct strbuf shown = { 0 };
        text_add_printable(&shown, scheme, 32);
        err_set(err, ERR_AUTHENTICATION_FAILED,
                "Invalid authentication: '%s' HTTP Authorization scheme is not supported", strbuf_cstr(&shown));
        strbuf_fini(&shown);
        return false;
    }
    struct strbuf text = { 0 };
    bool ok = text_from_base64(str_trim(rest), &text);
    struct str both = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    if (!ok)
        return err_set(err, ERR_POCO_EXCEPTION, "Bad data format");
    ptrdiff_t colon = str_find_char(both, ':');
    *user = colon == STR_NONE ? both : str_sub(both, 0, (size_t)colon);
    *password = colon == STR_NONE ? STR_EMPTY : str_from(both, (size_t)colon + 1);
    if (user->len == 0)
        return err_set(err, ERR_AUTHENTICATION_FAILED, "Got an empty user name from HTTP Basic authentication");
    return true;
}

/* Which way was used, and what it says. */
static bool claim_read(const struct auth_claim *claim, struct arena *arena, struct str *name, struct str *password,
                       struct err *err)
{
    bool headers = claim->header_user.len > 0 || claim->header_key.len > 0; /* empty ones say nothing */
    bool url = claim->url_user_given || claim->url_password.len > 0;
    if (headers && claim->authorization_given)
        return err_set(err, ERR_AUTHENTICATION_FAILED,
                       "Invalid authentication: it is not allowed to use X-ClickHouse HTTP headers and Authorization "
                       "HTTP header simultaneously");
    if (headers && url)
        return err_set(err, ERR_AUTHENTICATION_FAILED,
                       "Invalid authentication: it is not allowed to use X-ClickHouse HTTP headers and authentication "
                       "via parameters simultaneously");
    if (claim->authorization_given && claim->url_password.len > 0)
        return err_set(err, ERR_AUTHENTICATION_FAILED,
                       "Invalid authentication: it is not allowed to use Authorization HTTP header and authentication "
                       "via parameters simultaneously");
    if (headers) {
        *name = claim->header_user;
        *password = claim->header_key;
        if (name->len == 0)
            return err_set(err, ERR_AUTHENTICATION_FAILED, "Got an empty user name from X-ClickHouse HTTP headers");
        return true;
    }
    if (claim->url_user_given && claim->url_user.len == 0)
        return err_set(err, ERR_AUTHENTICATION_FAILED, "Got an empty user name from authentication via parameters");
    if (claim->authorization_given)
        return basic_read(claim->authorization, arena, name, password, err);
    *name = claim->url_user_given ? claim->url_user : STR("default");
    *password = claim->url_password;
    return true;
}

/* Has the certificate one of the user's names? */
static bool certificate_fits(const struct config_user *user, struct str names)
{
    struct str name;
    while (str_cut(&names, '\n', &name))
        for (size_t i = 0; i < user->certificates.count; i++)
            if (str_eq(user->certificates.items[i], name))
                return true;
    return false;
}

/* Where a certificate speaks for the sender: the user, else NULL. named: the request says who he is. */
static const struct account *certified(const struct auth *auth, const struct auth_claim *claim, struct str name,
                                       struct str password)
{
    bool named = claim->header_user.len > 0 || claim->authorization_given || claim->url_user_given;
    const struct account *account = named ? account_of(auth, name) : NULL;
    if (claim->certificate.len == 0 || password.len > 0)
        return NULL;
    if (named)
        return account != NULL && certificate_fits(account->user, claim->certificate) ? account : NULL;
    for (size_t i = 0; i < auth->count; i++)
        if (certificate_fits(auth->accounts[i].user, claim->certificate))
            return &auth->accounts[i];
    return NULL;
}

static struct str without_port(struct str peer)
{
    size_t len = peer.len;
    while (len > 0 && peer.data[len - 1] != ':')
        len--;
    return len == 0 ? peer : str_sub(peer, 0, len - 1);
}

enum auth_answer auth_check(struct auth *auth, const struct auth_claim *claim, uint64_t now_ns, struct arena *arena,
                            const struct config_user **user, struct auth_attempt *attempt, struct err *err)
{
    struct auth_sender sender = { .address = without_port(claim->peer), .loopback = claim->loopback };
    if (!claim_read(claim, arena, &sender.name, &sender.password, err))
        return AUTH_REFUSED;
    const struct account *account = certified(auth, claim, sender.name, sender.password);
    if (account != NULL) {
        *user = account->user;
        return AUTH_KNOWN;
    }
    account = account_of(auth, sender.name);
    bool known = auth_memory_knows(auth->memory, &sender, now_ns) && account != NULL; /* in this order: equal times */
    if (!known && !auth->open && !auth_memory_allows(auth->memory, &sender, now_ns))
        return refuse(sender.name, "budget", err);
    bool quick = account == NULL || !account->slow;
    if (!known && quick && password_fits(account, sender.password)) {
        known = true;
        auth_memory_learn(auth->memory, &sender, now_ns);
    }
    if (!known && auth->decoy != NULL && !claim->tried) {
        *attempt = (struct auth_attempt){ arena_dup(arena, sender.name), arena_dup(arena, sender.password) };
        return AUTH_SLOW;
    }
    if (!known) {
        auth_memory_count_failure(auth->memory, &sender, now_ns);
        return refuse(sender.name, "credentials", err);
    }
    if (auth->open && !claim->loopback) {
        err_set(err, ERR_AUTHENTICATION_FAILED,
                "default: Authentication failed: without configured users only this machine may connect");
        return AUTH_REFUSED;
    }
    *user = account->user;
    return AUTH_KNOWN;
}

/* What is spoken for ahead of now is never more than a quota's whole time; one insert that is larger than that is let
 * through when nothing is, or it never would be. False: *again_ns. */
static bool has_room(uint64_t until_ns, uint64_t amount, uint64_t per_minute, uint64_t now_ns, uint64_t *until_then_ns,
                     uint64_t *again_ns)
{
    *until_then_ns = until_ns;
    if (per_minute == 0)
        return true;
    double cost_ns = (double)amount * (double)QUOTA_NS / (double)per_minute;
    uint64_t from_ns = MAX(until_ns, now_ns), whole_ns = MIN((uint64_t)MIN(cost_ns, 1e15), QUOTA_NS);
    *until_then_ns = from_ns + (uint64_t)MIN(cost_ns, 1e15);
    if (from_ns - now_ns + whole_ns <= QUOTA_NS)
        return true;
    *again_ns = MAX(*again_ns, from_ns + whole_ns - QUOTA_NS);
    return false;
}

bool auth_take_quota(struct auth *auth, const struct config_user *user, uint64_t bytes, uint64_t now_ns,
                     uint64_t *again_ns, struct err *err)
{
    uint64_t inserts_ns, bytes_ns;
    *again_ns = now_ns;
    if (user->inserts_per_minute == 0 && user->bytes_per_minute == 0)
        return true;
    struct account *account = &auth->accounts[user - auth->accounts[0].user]; /* in the configuration's order */
    must(account->user == user);
    mutex_lock(&auth->lock);
    bool number = has_room(account->inserts_ns, 1, user->inserts_per_minute, now_ns, &inserts_ns, again_ns);
    bool size = has_room(account->bytes_ns, bytes, user->bytes_per_minute, now_ns, &bytes_ns, again_ns);
    if (number && size) {
        account->inserts_ns = inserts_ns;
        account->bytes_ns = bytes_ns;
    }
    mutex_unlock(&auth->lock);
    if (number && size)
        return true;
    return err_set(err, ERR_QUOTA_EXCEEDED,
                   "Quota for user `" STR_FMT "` has been exceeded: %s per minute, at most %llu", STR_ARG(user->name),
                   number ? "bytes of inserts" : "inserts",
                   (unsigned long long)(number ? user->bytes_per_minute : user->inserts_per_minute));
}

/* "db.table", "db.*", "*", "*.*" */
static bool pattern_fits(struct str pattern, struct str database, struct str table)
{
    if (str_is(pattern, "*"))
        return true;
    struct str rest = pattern, left;
    if (!str_cut(&rest, '.', &left))
        return false;
    return (str_is(left, "*") || str_eq(left, database)) && (str_is(rest, "*") || str_eq(rest, table));
}

bool auth_allows(const struct config_user *user, unsigned grant, struct str database, struct str table)
{
    if ((user->grants & grant) == 0)
        return false;
    if (user->tables.count == 0)
        return true;
    for (size_t i = 0; i < user->tables.count; i++) {
        if (pattern_fits(user->tables.items[i], database, table))
            return true;
    }
    return false;
}

size_t auth_users_count(const struct auth *auth)
{
    return auth->count;
}

const struct config_user *auth_user_at(const struct auth *auth, size_t index)
{
    must(index < auth->count);
    return auth->accounts[index].user;
}
