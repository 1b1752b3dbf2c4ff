/* The answer as a Parquet file that ClickHouse, too, takes for what it is. */
#include "format/output_impl.h"
#include "format/parquet.h"

/* The limit of the answer is asked for at the end. */
static bool add_bytes(void *context, struct str bytes, struct err *err)
{
    (void)err;
    strbuf_add(context, bytes);
    return true;
}

static struct schema *schema_of(const struct block *block)
{
    struct arena *arena = arena_new(4096);
    struct schema_column *columns = ARENA_ARRAY(arena, struct schema_column, block->columns_count + 1);
    for (size_t i = 0; i < block->columns_count; i++)
        columns[i] = (struct schema_column){ .name = arena_dup(arena, block->names[i]),
                                             .type = type_dup(block->columns[i].type, arena) };
    return schema_new(arena, columns, block->columns_count, 0);
}

void output_parquet(struct output *o)
{
    static const struct parquet_options options = { .profile = PARQUET_ANSWER, .codec = PARQUET_ZSTD };
    struct schema *schema = schema_of(o->block);
    struct parquet_writer *w = parquet_writer_new(schema, &options, add_bytes, o->out);
    o->failed = !parquet_writer_add(w, o->block, o->err) || !parquet_writer_finish(w, NULL, 0, o->err);
    parquet_writer_free(w);
    schema_unref(schema);
}
