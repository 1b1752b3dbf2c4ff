/* tls.c: see tls.h. */
#include "gateway/tls.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/strbuf.h"

enum { CHAIN_MAX = 16, NAMES_MAX = 64, NAME_BYTES_MAX = 256, PEM_BYTES_MAX = 1 << 20 };

struct identity {
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned chain_length;
    gnutls_privkey_t key;
    struct strbuf client_ca;          /* text; empty: none */
    gnutls_x509_trust_list_t clients; /* the same */
    struct identity *before;          /* kept until the end: a handshake may be at it */
};

static _Atomic(struct identity *) current;

static void identity_free(struct identity *identity)
{
    for (unsigned i = 0; i < identity->chain_length; i++)
        gnutls_pcert_deinit(&identity->chain[i]);
    gnutls_privkey_deinit(identity->key);
    gnutls_x509_trust_list_deinit(identity->clients, 1);
    strbuf_fini(&identity->client_ca);
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

static bool take_clients(struct identity *identity, struct fs *fs, const struct tls_files *files, struct err *err)
{
    if (files->client_ca[0] == '\0')
        return true;
    if (!read_pem(fs, files->directory, files->client_ca, &identity->client_ca, err))
        return false;
    gnutls_datum_t data = datum_of(&identity->client_ca);
    int count = gnutls_x509_trust_list_add_trust_mem(identity->clients, &data, NULL, GNUTLS_X509_FMT_PEM, 0, 0);
    return count > 0 || fail(count < 0 ? count : GNUTLS_E_NO_CERTIFICATE_FOUND, "CAs", files->client_ca, err);
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
        metric_set(METRIC_TLS_EXPIRY, (double)until);
    }
    gnutls_x509_crt_deinit(certificate);
}

bool tls_load(struct fs *fs, const struct tls_files *files, int64_t wall_ns, struct err *err)
{
    struct identity *identity = NEW(struct identity);
    struct strbuf cert, key;
    must(gnutls_privkey_init(&identity->key) == 0 && gnutls_x509_trust_list_init(&identity->clients, 0) == 0);
    bool ok = read_pem(fs, files->directory, files->cert, &cert, err) && take_chain(identity, &cert, files->cert, err);
    strbuf_fini(&cert);
    if (ok) {
        ok = read_pem(fs, files->directory, files->key, &key, err) && take_key(identity, &key, files->key, err) &&
             check_pair(identity, files->cert, files->key, err);
        strbuf_fini(&key);
    }
    if (!ok || !take_clients(identity, fs, files, err)) {
        identity_free(identity);
        return false;
    }
    tell_dates(identity, files->cert, wall_ns);
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

const char *tls_client_ca(void)
{
    const struct identity *identity = atomic_load(&current);
    return identity == NULL || identity->client_ca.len == 0 ? NULL : strbuf_cstr(&identity->client_ca);
}

/* A name with a line break in it is nobody's. */
static void add_name(struct strbuf *names, const char *name, size_t len)
{
    if (len > 0 && memchr(name, '\n', len) == NULL && memchr(name, '\0', len) == NULL) {
        strbuf_add_bytes(names, name, len);
        strbuf_add_char(names, '\n');
    }
}

static void add_names(gnutls_x509_crt_t certificate, struct strbuf *names)
{
    char name[NAME_BYTES_MAX];
    size_t len = sizeof name;
    if (gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &len) >= 0)
        add_name(names, name, len);
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        len = sizeof name;
        int type = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &len, NULL);
        if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            return;
        if (type == GNUTLS_SAN_DNSNAME || type == GNUTLS_SAN_URI || type == GNUTLS_SAN_RFC822NAME)
            add_name(names, name, len);
    }
}

void tls_client_names(gnutls_session_t session, struct strbuf *names)
{
    const struct identity *identity = atomic_load(&current);
    gnutls_x509_crt_t chain[CHAIN_MAX];
    unsigned shown = 0, count = 0, status = UINT_MAX;
    const gnutls_datum_t *raw = gnutls_certificate_get_peers(session, &shown);
    gnutls_typed_vdata_st purpose = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
                                      .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT };
    if (identity->client_ca.len == 0 || raw == NULL || shown > CHAIN_MAX)
        return;
    bool ok = true;
    for (; ok && count < shown; count += ok) {
        must(gnutls_x509_crt_init(&chain[count]) == 0);
        ok = gnutls_x509_crt_import(chain[count], &raw[count], GNUTLS_X509_FMT_DER) >= 0;
        if (!ok)
            gnutls_x509_crt_deinit(chain[count]);
    }
    if (ok && count > 0 &&
        gnutls_x509_trust_list_verify_crt2(identity->clients, chain, count, &purpose, 1, 0, &status, NULL) >= 0 &&
        status == 0)
        add_names(chain[0], names);
    else
        log_info("the certificate of a client is not taken: status=%u", status);
    while (count > 0)
        gnutls_x509_crt_deinit(chain[--count]);
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
