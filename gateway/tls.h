/* tls.h: the certificate that new TLS connections are shown.
 *
 * libmicrohttpd can ask for it at each handshake, so that another one can be put in its place without a new listener
 * and without ending a connection. There is one for the whole process: GnuTLS's callback brings no context. */
#ifndef SLUICE_GATEWAY_TLS_H
#define SLUICE_GATEWAY_TLS_H
#include <gnutls/abstract.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/must.h"
#include "base/strbuf.h"

/* Protocols and ciphers: what the system's policy says (Debian: GnuTLS's own choice), never below TLS 1.2. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct tls_files {
    const char *directory; /* where paths begin that are not absolute; NULL: where the process is */
    const char *cert, *key;
    const char *client_ca; /* empty: clients show no certificates */
};
/* Reads chain and key (PEM), checks that they belong together, and takes them and the CAs for every handshake from now
 * on. What was there stays if that fails. One thread at a time. Errors: BAD_ARGUMENTS, those of reading. */
must_use bool tls_load(struct fs *fs, const struct tls_files *files, int64_t wall_ns, struct err *err);
/* The CAs as text, to tell clients; NULL: none. Valid until tls_unload. */
const char *tls_client_ca(void);
/* Appends the names (CN and those of the SAN), a line each, of the certificate that the client has shown, if one of the
 * CAs vouches for it. */
void tls_client_names(gnutls_session_t session, struct strbuf *names);
/* What GnuTLS calls (gnutls_certificate_retrieve_function2). Any thread. */
int tls_retrieve(gnutls_session_t session, const gnutls_datum_t *authorities, int authorities_count,
                 const gnutls_pk_algorithm_t *algorithms, int algorithms_count, gnutls_pcert_st **chain,
                 unsigned int *chain_length, gnutls_privkey_t *key);
/* At the end of the process, when no listener is left. */
void tls_unload(void);
#endif
