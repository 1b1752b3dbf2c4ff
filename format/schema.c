/* schema.c: see schema.h. The arena holds the struct itself too, so the last reference frees one thing. */
#include "format/schema.h"

#include "base/must.h"

struct schema *schema_new(struct arena *arena, const struct schema_column *columns, size_t count, unsigned version)
{
    struct schema *schema = ARENA_NEW(arena, struct schema);
    schema->arena = arena;
    schema->columns = columns;
    schema->columns_count = count;
    schema->version = version;
    schema->refs = 1;
    return schema;
}

struct schema *schema_ref(struct schema *schema)
{
    int before = __atomic_fetch_add(&schema->refs, 1, __ATOMIC_RELAXED);
    must(before > 0);
    return schema;
}

void schema_unref(struct schema *schema)
{
    if (schema == NULL)
        return;
    int before = __atomic_fetch_sub(&schema->refs, 1, __ATOMIC_ACQ_REL);
    must(before > 0);
    if (before == 1)
        arena_free(schema->arena);
}

int schema_find(const struct schema *schema, struct str name, bool fold)
{
    for (size_t i = 0; i < schema->columns_count; i++)
        if (str_eq(schema->columns[i].name, name))
            return (int)i;
    if (!fold)
        return -1;
    int found = -1;
    for (size_t i = 0; i < schema->columns_count; i++) {
        if (!str_eq_nocase(schema->columns[i].name, name))
            continue;
        if (found >= 0)
            return -2;
        found = (int)i;
    }
    return found;
}
