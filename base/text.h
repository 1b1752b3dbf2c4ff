/* text.h: bytes to and from the spellings that several formats share. All append to a strbuf. */
#ifndef SLUICE_BASE_TEXT_H
#define SLUICE_BASE_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "base/str.h"
#include "base/strbuf.h"

void text_add_hex(struct strbuf *b, struct str bytes);           /* lower case */
must_use bool text_from_hex(struct str hex, struct strbuf *out); /* either case */
void text_add_base64(struct strbuf *b, struct str bytes);
must_use bool text_from_base64(struct str base64, struct strbuf *out); /* padding required */

/* JSON string content without the quotes. Control bytes, quote and backslash are escaped; invalid UTF-8 passes as is.
 */
void text_add_json(struct strbuf *b, struct str s);
void text_add_json_quoted(struct strbuf *b, struct str s);
/* For logs and error texts: printable ASCII and valid UTF-8 pass, the rest as \xNN (marks that reorder or hide text on
 * a terminal too); cut to max bytes, then "...". */
void text_add_printable(struct strbuf *b, struct str s, size_t max);

/* application/x-www-form-urlencoded ('+' is a space when plus is true). False on a bad %XX. */
must_use bool text_url_decode(struct str s, bool plus, struct strbuf *out);
void text_url_encode(struct strbuf *b, struct str s); /* all but [A-Za-z0-9_.~-] */

bool text_is_utf8(struct str s);
/* Bytes of the valid UTF-8 sequence that starts s, or 0. */
size_t text_utf8_len(struct str s);
/* The least UTF-8 text that is greater than all texts that start with s, which is UTF-8. False: there is none. */
must_use bool text_add_successor(struct strbuf *b, struct str s);
/* s with U+FFFD in place of each run of bytes that are not UTF-8, as toValidUTF8 does. */
void text_add_utf8(struct strbuf *b, struct str s);
size_t text_put_utf8(char out[4], uint32_t code_point); /* number of bytes; surrogates are encoded as they are */

/* "10MiB", "64k", "1Gi", "500ms", "1.5s", "2h": number and unit. A bare number is accepted where bare_ok. k, M, G, T
 * are powers of 1000, Ki, Mi, Gi, Ti of 1024, with or without B; ns, us, ms, s, m or min, h, d. Case does not count.
 * The result has to be whole and to fit 64 bits. */
must_use bool text_parse_bytes(struct str s, bool bare_ok, uint64_t *bytes);
must_use bool text_parse_duration_ns(struct str s, bool bare_ok_seconds, uint64_t *ns);
#endif
