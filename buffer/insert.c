/* insert.c: one client's request to store rows. */
#include "buffer/insert.h"

#include <stdlib.h>
#include <string.h>

#include "base/metric.h"

const char *ack_name(enum ack_level level)
{
    static const char *const names[] = {
        [ACK_NONE] = "none", [ACK_BUFFERED] = "buffered", [ACK_SPOOLED] = "spooled", [ACK_STORED] = "stored"
    };
    must((size_t)level < ARRAY_COUNT(names));
    return names[level];
}

struct insert *insert_new(struct shape *shape, char *body, size_t body_bytes)
{
    struct insert *insert = NEW(struct insert);
    list_init(&insert->link);
    insert->shape = shape_ref(shape);
    insert->body = body;
    insert->body_bytes = body_bytes;
    return insert;
}

void insert_free(struct insert *insert)
{
    if (insert == NULL)
        return;
    must(list_empty(&insert->link));
    shape_unref(insert->shape);
    free(insert->body);
    free(insert->token);
    free(insert);
}

void insert_count_rows(struct insert *insert)
{
    struct str body = str_make(insert->body == NULL ? "" : insert->body, insert->body_bytes);
    insert->rows_framed = shape_count_rows(insert->shape, body);
}

void rows_rejected(uint64_t rows, enum err_code code)
{
    struct str labels[] = { STR("clickhouse"), str_of(err_name(code)) };
    metric_series_add(metric_series(METRIC_ROWS_REJECTED, labels), MAX(rows, (uint64_t)1));
}

size_t insert_cost(const struct insert *insert)
{
    return sizeof(*insert) + insert->body_bytes + (insert->token == NULL ? 0 : strlen(insert->token) + 1);
}

bool insert_needs_letter(const struct insert *insert)
{
    bool refused = insert->outcome == INSERT_REJECTED || insert->outcome == INSERT_UNKNOWN;
    return refused && insert->letter_id == 0 && (insert->done == NULL || insert->answered);
}
