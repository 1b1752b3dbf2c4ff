/* tls.c: see tls.h. */
#include "gateway/tls.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strbuf.h"

enum { CHAIN_MAX = 16, PEM_BYTES_MAX = 1 << 20 };

struct identity {
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned chain_length;
    gnutls_privkey_t key;
    struct identity *before; /* kept until the end: a handshake may be at it */
};

static _Atomic(struct identity *) current;

static void identity_free(struct identity *identity)
{
    for (unsigned i = 0; i < identity->chain_length; i++)
        gnutls_pcert_deinit(&identity->chain[i]);
    gnutls_privkey_deinit(identity->key);
    free(identity);
}

static bool fail(int code, const char *what, const char *path, struct err *err)
{
    return err_set(err, ERR_BAD_ARGUMENTS, "%s %s: %s", what, path, gnutls_strerror(code));
}

static bool read_pem(struct fs *fs, const char *directory, const char *path, struct strbuf *pem, struct err *err)
{
    struct strbuf full = { 0 };
    strbuf_init(pem, PEM_BYTES_MAX);
    if (path[0] != '/' && directory != NULL)
        strbuf_addf(&full, "%s/", directory);
    strbuf_add_text(&full, path);
    bool ok = fs_read_file(fs, strbuf_cstr(&full), PEM_BYTES_MAX, pem, err);
    strbuf_fini(&full);
    return ok;
}

static gnutls_datum_t datum_of(struct strbuf *text)
{
    return (gnutls_datum_t){ .data = (unsigned char *)(uintptr_t)strbuf_cstr(text), .size = (unsigned)text->len };
}

static bool take_chain(struct identity *identity, struct strbuf *pem, const char *path, struct err *err)
{
    gnutls_datum_t data = datum_of(pem);
    unsigned length = CHAIN_MAX;
    int code = gnutls_pcert_list_import_x509_raw(identity->chain, &length, &data, GNUTLS_X509_FMT_PEM,
                                                 GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
    identity->chain_length = code < 0 ? 0 : length;
    if (code < 0 || length == 0)
        return fail(code < 0 ? code : GNUTLS_E_NO_CERTIFICATE_FOUND, "certificate", path, err);
    return true;
}

static bool take_key(struct identity *identity, struct strbuf *pem, const char *path, struct err *err)
{
    gnutls_datum_t data = datum_of(pem);
    int code = gnutls_privkey_import_x509_raw(identity->key, &data, GNUTLS_X509_FMT_PEM, NULL, 0);
    return code >= 0 || fail(code, "key", path, err);
}

/* Is the key the certificate's own? */
static bool check_pair(struct identity *identity, const char *cert_path, const char *key_path, struct err *err)
{
    unsigned char of_cert[64], of_key[64];
    size_t cert_bytes = sizeof of_cert, key_bytes = sizeof of_key;
    gnutls_pubkey_t key;
    must(gnutls_pubkey_init(&key) == 0);
    int code = gnutls_pubkey_import_privkey(key, identity->key, 0, 0);
    if (code >= 0)
        code = gnutls_pubkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, of_key, &key_bytes);
    if (code >= 0)
        code = gnutls_pubkey_get_key_id(identity->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, of_cert, &cert_bytes);
    gnutls_pubkey_deinit(key);
    if (code < 0)
        return fail(code, "key", key_path, err);
    return (cert_bytes == key_bytes && memcmp(of_cert, of_key, key_bytes) == 0) ||
           err_set(err, ERR_BAD_ARGUMENTS, "key %s does not belong to certificate %s", key_path, cert_path);
}

/* One that has run out is still shown: clients say what is wrong with it, an endpoint that is not there says nothing.
 */
static void tell_dates(const struct identity *identity, const char *path, int64_t wall_ns)
{
    gnutls_x509_crt_t certificate;
    must(gnutls_x509_crt_init(&certificate) == 0);
    if (gnutls_x509_crt_import(certificate, &identity->chain[0].cert, GNUTLS_X509_FMT_DER) >= 0) {
        int64_t now = wall_ns / (int64_t)NS_PER_S, until = gnutls_x509_crt_get_expiration_time(certificate);
        if (until < now)
            log_error("the certificate has run out: path=%s", path);
        else
            log_info("certificate taken: path=%s days_left=%lld", path, (long long)(until - now) / 86400);
    }
    gnutls_x509_crt_deinit(certificate);
}

bool tls_load(struct fs *fs, const char *directory, const char *cert_path, const char *key_path, int64_t wall_ns,
              struct err *err)
{
    struct identity *identity = NEW(struct identity);
    struct strbuf cert, key;
    must(gnutls_privkey_init(&identity->key) == 0);
    bool ok = read_pem(fs, directory, cert_path, &cert, err) && take_chain(identity, &cert, cert_path, err);
    strbuf_fini(&cert);
    if (ok) {
        ok = read_pem(fs, directory, key_path, &key, err) && take_key(identity, &key, key_path, err) &&
             check_pair(identity, cert_path, key_path, err);
        strbuf_fini(&key);
    }
    if (!ok) {
        identity_free(identity);
        return false;
    }
    tell_dates(identity, cert_path, wall_ns);
    identity->before = atomic_load(&current);
    atomic_store(&current, identity);
    return true;
}

int tls_retrieve(gnutls_session_t session, const gnutls_datum_t *authorities, int authorities_count,
                 const gnutls_pk_algorithm_t *algorithms, int algorithms_count, gnutls_pcert_st **chain,
                 unsigned int *chain_length, gnutls_privkey_t *key)
{
    struct identity *identity = atomic_load(&current);
    (void)session;
    (void)authorities;
    (void)authorities_count;
    (void)algorithms;
    (void)algorithms_count;
    *chain = identity->chain;
    *chain_length = identity->chain_length;
    *key = identity->key;
    return 0;
}

void tls_unload(void)
{
    struct identity *identity = atomic_exchange(&current, NULL);
    while (identity != NULL) {
        struct identity *before = identity->before;
        identity_free(identity);
        identity = before;
    }
}
