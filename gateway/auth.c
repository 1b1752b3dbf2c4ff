/* auth.c: see auth.h. Passwords are SHA-256 of a long random token; the comparison takes the same time wherever two
 * digests differ, and an unknown user costs as much as a wrong password. */
#include "gateway/auth.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "config/config.h"

enum { SHA256_BYTES = 32 };

struct account {
    struct auth_user user;
    bool empty_password;
    unsigned char digest[SHA256_BYTES];
};
struct auth {
    struct account *accounts;
    size_t count;
    bool open; /* no users configured */
};

static void sha256(struct str text, unsigned char digest[SHA256_BYTES])
{
    must(gnutls_hash_fast(GNUTLS_DIG_SHA256, text.data, text.len, digest) == 0);
}

static void account_init(struct account *account, const struct config_user *from)
{
    account->user = (struct auth_user){ .name = from->name,
                                        .grants = from->grants,
                                        .tables = from->tables,
                                        .tables_count = from->tables_count,
                                        .settings = from->settings,
                                        .settings_count = from->settings_count };
    account->empty_password = from->password.len == 0;
    if (account->empty_password)
        return;
    struct strbuf digest = { 0 };
    struct str hex = str_from(from->password, STR("sha256:").len);
    must(str_starts(from->password, STR("sha256:"))); /* the configuration is checked */
    must(text_from_hex(hex, &digest) && digest.len == SHA256_BYTES);
    memcpy(account->digest, digest.data, SHA256_BYTES);
    strbuf_fini(&digest);
}

struct auth *auth_new(const struct config *config)
{
    struct auth *auth = NEW(struct auth);
    auth->open = config->users_count == 0;
    auth->count = auth->open ? 1 : config->users_count;
    auth->accounts = mem_zalloc(auth->count * sizeof(auth->accounts[0]));
    if (auth->open) {
        auth->accounts[0].user =
            (struct auth_user){ .name = STR("default"), .grants = GRANT_INSERT | GRANT_READ | GRANT_ADMIN };
        auth->accounts[0].empty_password = true;
        return auth;
    }
    for (size_t i = 0; i < auth->count; i++)
        account_init(&auth->accounts[i], &config->users[i]);
    return auth;
}

void auth_free(struct auth *auth)
{
    if (auth == NULL)
        return;
    free(auth->accounts);
    free(auth);
}

static bool password_fits(const struct account *account, struct str password)
{
    static const unsigned char nobody[SHA256_BYTES];
    unsigned char digest[SHA256_BYTES];
    sha256(password, digest);
    if (account != NULL && account->empty_password)
        return password.len == 0;
    bool same = gnutls_memcmp(digest, account == NULL ? nobody : account->digest, SHA256_BYTES) == 0;
    return account != NULL && same;
}

static bool refuse(struct str name, struct err *err)
{
    struct strbuf shown = { 0 };
    text_add_printable(&shown, name, 64);
    enum err_code code = str_is(name, "default") ? ERR_REQUIRED_PASSWORD : ERR_AUTHENTICATION_FAILED;
    err_set(err, code, "%s: Authentication failed: password is incorrect, or there is no user with such name",
            strbuf_cstr(&shown));
    strbuf_fini(&shown);
    return false;
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

bool auth_check(const struct auth *auth, const struct auth_claim *claim, struct arena *arena,
                const struct auth_user **user, struct err *err)
{
    struct str name = STR_EMPTY, password = STR_EMPTY;
    if (!claim_read(claim, arena, &name, &password, err))
        return false;
    const struct account *account = NULL;
    for (size_t i = 0; i < auth->count && account == NULL; i++) {
        if (str_eq(auth->accounts[i].user.name, name))
            account = &auth->accounts[i];
    }
    if (!password_fits(account, password))
        return refuse(name, err);
    if (auth->open && !claim->loopback)
        return err_set(err, ERR_AUTHENTICATION_FAILED,
                       "default: Authentication failed: without configured users only this machine may connect");
    *user = &account->user;
    return true;
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

bool auth_allows(const struct auth_user *user, unsigned grant, struct str database, struct str table)
{
    if ((user->grants & grant) == 0)
        return false;
    if (user->tables_count == 0)
        return true;
    for (size_t i = 0; i < user->tables_count; i++) {
        if (pattern_fits(user->tables[i], database, table))
            return true;
    }
    return false;
}

size_t auth_users_count(const struct auth *auth)
{
    return auth->count;
}

const struct auth_user *auth_user_at(const struct auth *auth, size_t index)
{
    must(index < auth->count);
    return &auth->accounts[index].user;
}
