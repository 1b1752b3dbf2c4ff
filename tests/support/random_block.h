/* random_block.h: schemas from type texts and blocks of random rows, the same for the same seed. */
#ifndef SLUICE_TESTS_SUPPORT_RANDOM_BLOCK_H
#define SLUICE_TESTS_SUPPORT_RANDOM_BLOCK_H
#include "base/rng.h"
#include "format/block.h"
#include "format/schema.h"

/* Columns c0, c1, ... of these types, with field ids from 1; stops the process at a type that does not parse. */
struct schema *random_schema(const char *const *types, size_t count);

enum random_shape {
    RANDOM_ANY,      /* another of the following for each column */
    RANDOM_CONSTANT, /* one value */
    RANDOM_FEW,      /* some 20 values */
    RANDOM_RISING,   /* numbers that grow, with repetition */
    RANDOM_WILD,     /* all values of the type, extremes among them */
    RANDOM_SHAPES
};
/* Appends rows to c; about one in eight is NULL where the type allows it. utf8: strings are valid UTF-8. */
void random_column(struct column *c, size_t rows, enum random_shape shape, bool utf8, struct rng *rng);
/* Initialises a block of the schema's columns. */
void random_block(struct block *b, const struct schema *schema, size_t rows, enum random_shape shape, bool utf8,
                  struct rng *rng);
/* The first cell in which the blocks differ (NaN equals NaN), or false where they are the same. */
bool block_differs(const struct block *a, const struct block *b, size_t *column, size_t *row);
#endif
