/* route.h: which code answers which path. */
#ifndef SLUICE_GATEWAY_ROUTE_H
#define SLUICE_GATEWAY_ROUTE_H
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "format/rows.h"
#include "gateway/request.h"

struct route {
    const char *path;
    enum { ROUTE_ANY, ROUTE_READ, ROUTE_READ_EXACT } takes; /* any request; GET and HEAD; those with no `?` behind it */
    /* After the headers. MORE: the body is wanted. */
    enum request_step (*begin)(struct request *request);
    /* The body is complete. NULL where begin always answers. */
    enum request_step (*end)(struct request *request);
};

/* Never NULL: unknown paths have a route of their own. */
const struct route *route_find(bool admin, struct str path, struct str target, bool get_or_head);

/* statement_route.c: "/" */
enum request_step statement_begin(struct request *request);
enum request_step statement_end(struct request *request);
struct insert_data { /* what is parsed apart from any buffer, and how */
    const struct row_format *format;
    const struct schema *schema;
    const struct str *columns; /* the statement's list; 0: all */
    size_t columns_count;
    const struct format_settings *settings;
    struct str body;
};
/* From the pool: the rows into block, which is made for them: block_fini() it in any case. */
must_use bool insert_parse(struct request *request, const struct insert_data *data, struct block *block,
                           struct rows_report *report, struct err *err);
/* insert_route.c. Whether an insert whose body has not come yet would find room, as far as its head tells: what would
 * not is refused before it is read, which costs least. */
must_use bool insert_finds_room(const struct request *request, const struct plan *plan, struct err *err);
/* request->data holds the data alone, or the SELECT; plan has its shape. */
enum request_step insert_admit(struct request *request, const struct plan *plan);
/* From the pool: the rows in request->data go to request->shape at once; the flusher decides the request. */
void insert_rows(struct request *request);
/* From the pool: the rows in request->data go to no table of the store. The request is answered. */
void insert_loose(struct request *request);
/* insert_select.c. request->data is the SELECT, request->shape that of its rows. */
enum request_step insert_select(struct request *request, const struct plan *plan);
/* From the pool: request->statement is the SELECT. True: the request is answered; false: the flusher decides it. */
bool insert_select_run(struct request *request);
/* admin_route.c */
enum request_step admin_metrics(struct request *request);
enum request_step admin_healthy(struct request *request);
enum request_step admin_ready(struct request *request);
enum request_step admin_startup(struct request *request);
enum request_step admin_post_begin(struct request *request);
enum request_step admin_flush(struct request *request);
enum request_step admin_drain(struct request *request);
enum request_step admin_reload(struct request *request);
#endif
