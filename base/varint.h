/* varint.h: whole numbers in as few bytes as they need (7 bits a byte, the lowest first), and texts behind their
 * length. For records on disk. */
#ifndef SLUICE_BASE_VARINT_H
#define SLUICE_BASE_VARINT_H
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "base/str.h"
#include "base/strbuf.h"

void varint_add(struct strbuf *out, uint64_t number);
void varint_add_text(struct strbuf *out, struct str text);
/* Takes it off *rest. False where it is cut short or does not fit. *text points into *rest. */
must_use bool varint_take(struct str *rest, uint64_t *number);
must_use bool varint_take_text(struct str *rest, struct str *text);
#endif
