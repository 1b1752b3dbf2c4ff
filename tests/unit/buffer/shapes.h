/* shapes.h: shapes and inserts to test with. */
#ifndef SLUICE_TESTS_UNIT_BUFFER_SHAPES_H
#define SLUICE_TESTS_UNIT_BUFFER_SHAPES_H
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "buffer/insert.h"
#include "tests/support/cmocka_all.h"

static const int64_t WALL_NS = 1764518400000000000;

/* Fixed waits of 200 ms, 1,000 bytes, 10 inserts. */
static struct shape_spec plain_spec(const char *table, const char *user)
{
    struct shape_spec spec = {
        .database = STR("d"),
        .table = str_of(table),
        .user = str_of(user),
        .deduplicate = true,
        .limits = { .bytes_max = 1000,
                    .inserts_max = 10,
                    .wait_ns_min = 50 * NS_PER_MS,
                    .wait_ns_max = 200 * NS_PER_MS,
                    .adaptive = false },
    };
    struct err err = { 0 };
    if (!row_format_find(STR("CSV"), &spec.format, &err))
        fail_msg("%s", err.text);
    return spec;
}

static struct shape *make_shape(const struct shape_spec *spec)
{
    struct shape *shape = NULL;
    struct err err = { 0 };
    if (!shape_new(spec, &shape, &err))
        fail_msg("%s", err.text);
    return shape;
}

static __attribute__((unused)) struct shape *plain_shape(const char *table)
{
    struct shape_spec spec = plain_spec(table, "u");
    return make_shape(&spec);
}

static __attribute__((unused)) struct insert *make_insert(struct shape *shape, const char *body)
{
    struct insert *insert = insert_new(shape, mem_strdup(body), strlen(body));
    insert->arrival_wall_ns = WALL_NS;
    return insert;
}
#endif
