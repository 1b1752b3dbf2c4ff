/* A type that was read prints as text that reads as the same type; its copy is equal; columns of it take defaults. */
#include <stdint.h>

#include "base/arena.h"
#include "base/must.h"
#include "format/block.h"
#include "format/type.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(4096);
    const struct type *type, *again;
    struct err err = { 0 };
    if (type_parse(str_make(data, size), arena, &type, &err)) {
        must(type_parse(type->text, arena, &again, &err));
        must(type_eq(type, again) && str_eq(type->text, again->text));
        must(type_eq(type, type_dup(type, arena)));
        if (type_width(type) < 4096) {
            struct column c;
            column_init(&c, type);
            column_push_default(&c);
            must(column_compare(&c, 0, &c, 0) == 0);
            column_fini(&c);
        }
    } else {
        must(err.code != ERR_OK && err.text[0] != '\0');
    }
    arena_free(arena);
    return 0;
}
