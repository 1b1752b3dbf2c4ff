/* replay.c: see replay.h. Letters are put in groups: one flush for each group. */
#include "gateway/replay.h"

#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/strbuf.h"
#include "base/sync.h"
#include "buffer/buffers.h"
#include "buffer/ledger.h"
#include "config/config.h"
#include "dlq/dlq.h"
#include "format/lexer.h"
#include "gateway/gateway.h"
#include "gateway/rules.h"
#include "gateway/settings_request.h"
#include "gateway/sink_store.h"

enum { GROUP = 256, LIST_PAGE = 1000, GROUP_BYTES_MAX = 32 << 20 };

/* One group that waits. Counted by reference: a verdict may come after the patience of the one who asked. */
struct group {
    struct mutex lock; /* LOCK_LISTENER; guards what follows */
    struct cond decided;
    size_t open, refs;
};
struct item {
    struct group *group;
    bool decided;
    enum insert_outcome outcome;
    struct err err;
    uint64_t rows, error_row;
    char error_column[64];
    struct shape *shape; /* a reference, where somebody waited for the verdict */
};

static void group_unref(struct group *group)
{
    mutex_lock(&group->lock);
    size_t left = --group->refs;
    mutex_unlock(&group->lock);
    if (left > 0)
        return;
    cond_fini(&group->decided);
    mutex_fini(&group->lock);
    free(group);
}

/* An item belongs to the flusher until it is decided, and to the asker from then on, if he still waits. */
struct ticket {
    struct item item;
    bool abandoned;
};

static void letter_done(void *context, const struct insert *insert)
{
    struct ticket *ticket = context;
    struct item *item = &ticket->item;
    struct group *group = item->group;
    mutex_lock(&group->lock);
    item->outcome = insert->outcome;
    item->err = insert->err;
    item->rows = insert->rows;
    item->error_row = insert->error_row;
    memcpy(item->error_column, insert->error_column, sizeof(item->error_column));
    item->decided = true;
    bool abandoned = ticket->abandoned;
    if (!abandoned)
        item->shape = shape_ref(insert->shape);
    group->open--;
    cond_signal(&group->decided);
    mutex_unlock(&group->lock);
    if (abandoned)
        free(ticket);
    group_unref(group);
}

/* "(a, b)" or nothing -> names in arena */
static bool columns_read(struct str text, struct arena *arena, struct str **columns, size_t *count, struct err *err)
{
    struct lexer lexer;
    struct strbuf name = { 0 };
    bool ok = true;
    *columns = ARENA_ARRAY(arena, struct str, text.len / 2 + 1);
    *count = 0;
    lexer_init(&lexer, text);
    if (str_trim(text).len == 0)
        return true;
    ok = lexer_take_symbol(&lexer, "(") || lexer_error(&lexer, lexer_peek(&lexer), "(", err);
    while (ok) {
        strbuf_clear(&name);
        ok = lexer_take_name(&lexer, &name, err);
        if (ok)
            (*columns)[(*count)++] = arena_dup(arena, strbuf_view(&name));
        if (!lexer_take_symbol(&lexer, ","))
            break;
    }
    strbuf_fini(&name);
    return ok && (lexer_take_symbol(&lexer, ")") || lexer_error(&lexer, lexer_peek(&lexer), ")", err));
}

static bool letter_shape(struct gateway *gateway, const struct letter *letter, struct arena *arena,
                         struct shape **shape, struct err *err)
{
    struct settings_request settings;
    const struct row_format *format = NULL;
    struct str *columns = NULL;
    size_t columns_count = 0;
    struct rules *rules = gateway_rules(gateway);
    settings_request_init(&settings, rules->config);
    rules_unref(rules);
    if (!row_format_find(letter->format, &format, err) ||
        !columns_read(letter->columns, arena, &columns, &columns_count, err))
        return false;
    struct shape_setting *kept = ARENA_ARRAY(arena, struct shape_setting, letter->settings_count + 1);
    for (size_t i = 0; i < letter->settings_count; i++) {
        kept[i] = (struct shape_setting){ letter->settings[i].name, letter->settings[i].value };
        if (!settings_request_apply(&settings, kept[i].name, kept[i].value, err))
            return false;
    }
    struct shape_spec spec = { .database = letter->database,
                               .table = letter->table,
                               .user = letter->user,
                               .columns = columns,
                               .columns_count = columns_count,
                               .format = format,
                               .settings = kept,
                               .settings_count = letter->settings_count,
                               .deduplicate = true,
                               .limits = settings.limits,
                               .storing = settings.storing };
    spec.storing.block_rows = spec.storing.join_rows = spec.storing.join_bytes = 0; /* one block */
    return shape_new(&spec, shape, err);
}

static struct insert *letter_insert(struct gateway *gateway, const struct letter *letter, struct shape *shape)
{
    char *body = mem_alloc(letter->body.len + 1);
    memcpy(body, letter->body.data, letter->body.len);
    body[letter->body.len] = '\0';
    struct insert *insert = insert_new(shape, body, letter->body.len);
    rng_uuid4_text(gateway->rng, insert->query_id);
    size_t peer = MIN(letter->peer.len, sizeof(insert->peer) - 1);
    memcpy(insert->peer, letter->peer.data, peer);
    insert->token = mem_alloc(letter->token.len + 1);
    memcpy(insert->token, letter->token.data, letter->token.len);
    insert->token[letter->token.len] = '\0';
    insert->token_given = true; /* also one that was made up: a replay that is repeated must not store twice */
    insert->letter_id = letter->id;
    insert->arrival_ns = clock_mono_ns(gateway->clock);
    insert->arrival_wall_ns = clock_wall_ns(gateway->clock);
    return insert;
}

/* Puts one letter into the buffers. False: refused at once, *item says why. */
static bool letter_put(struct gateway *gateway, uint64_t id, struct ticket *ticket, size_t *bytes)
{
    struct arena *arena = arena_new(4096);
    struct item *item = &ticket->item;
    struct letter letter;
    struct shape *shape = NULL;
    bool ok = false;
    item->outcome = INSERT_REJECTED;
    item->err = (struct err){ 0 };
    if (!dlq_get(gateway->dlq, id, arena, &letter, &item->err) ||
        !letter_shape(gateway, &letter, arena, &shape, &item->err))
        goto done;
    struct insert *insert = letter_insert(gateway, &letter, shape);
    insert->done = letter_done;
    insert->context = ticket;
    *bytes += insert->body_bytes;
    ok = buffers_put(gateway->buffers, insert, insert->arrival_ns, &item->err);
    if (!ok)
        insert_free(insert);
done:
    shape_unref(shape);
    arena_free(arena);
    return ok;
}

static void refuse(struct replay_verdict *verdict, const struct err *err, struct arena *arena)
{
    if (err->code == ERR_FILE_DOESNT_EXIST)
        return; /* missing, as it stands there */
    verdict->verdict = "refused";
    verdict->message = arena_printf(arena, "Code: %d. %s", (int)err->code, err->text);
}

static void note_refusal(struct gateway *gateway, uint64_t id, const struct item *item)
{
    struct err err = { 0 };
    struct letter outcome = { .code = (int)item->err.code,
                              .reason = str_of(item->err.text),
                              .row = item->error_row,
                              .column = str_of(item->error_column),
                              .last_wall_ns = clock_wall_ns(gateway->clock) };
    if (!dlq_note_attempt(gateway->dlq, id, &outcome, &err) && err.code != ERR_FILE_DOESNT_EXIST)
        log_warn("dead letter not updated: id=%016llx code=%d error=%s", (unsigned long long)id, (int)err.code,
                 err.text);
}

static void note_stored(struct gateway *gateway, const struct item *item, struct arena *arena,
                        struct replay_verdict *verdict)
{
    struct err err = { 0 };
    uint64_t booked = 0;
    bool stored = item->outcome == INSERT_STORED;
    verdict->verdict = stored ? "stored" : "duplicate";
    CRASH_POINT("replay.stored");
    if (dlq_drop(gateway->dlq, verdict->id, &booked, &err)) {
        enum ledger_account to = stored ? LEDGER_WRITTEN : LEDGER_DUPLICATE;
        struct ledger_entry entry = { 0 };
        ledger_add(&entry, LEDGER_LETTERS, to, 1, 0);
        ledger_add_rows(&entry, LEDGER_LETTERS, to, booked, item->rows);
        ledger_post(gateway->ledger, &entry, item->shape->full_name);
    } else if (err.code != ERR_FILE_DOESNT_EXIST) { /* else somebody replayed or dropped it at the same time */
        verdict->message = arena_printf(arena, "its rows are stored, but the letter stays: %s", err.text);
    }
}

static void report(struct gateway *gateway, const struct item *item, struct arena *arena,
                   struct replay_verdict *verdict)
{
    verdict->rows = item->rows;
    if (item->decided && (item->outcome == INSERT_STORED || item->outcome == INSERT_DUPLICATE)) {
        note_stored(gateway, item, arena, verdict);
    } else if (item->decided && item->outcome == INSERT_UNKNOWN) {
        verdict->verdict = "unknown";
        verdict->message = arena_printf(arena, "%s", item->err.text);
    } else {
        refuse(verdict, &item->err, arena);
        if (item->err.code != ERR_FILE_DOESNT_EXIST && item->err.code != ERR_ABORTED) /* the daemon stops */
            note_refusal(gateway, verdict->id, item);
    }
    metric_series_add(metric_series1(METRIC_DEAD_LETTER_REPLAYS, str_of(verdict->verdict)), 1);
}

/* Waits for the group's verdicts; what has none by then is marked so, and its ticket left to the flusher. */
static void group_wait(struct gateway *gateway, struct group *group, uint64_t deadline_ns, const atomic_bool *cancel)
{
    mutex_lock(&group->lock);
    while (group->open > 0) {
        uint64_t now_ns = clock_mono_ns(gateway->clock);
        if (now_ns >= deadline_ns || atomic_load_explicit(cancel, memory_order_relaxed))
            break;
        (void)cond_wait_until(&group->decided, &group->lock, MIN(deadline_ns, now_ns + 100 * NS_PER_MS));
    }
    mutex_unlock(&group->lock);
}

/* The ticket's end for the asker. */
static struct item ticket_take(struct group *group, struct ticket *ticket)
{
    mutex_lock(&group->lock);
    struct item item = ticket->item;
    bool open = !item.decided;
    ticket->abandoned = open;
    mutex_unlock(&group->lock);
    if (open) {
        item.decided = true;
        item.outcome = INSERT_UNKNOWN;
        err_set(&item.err, ERR_TIMEOUT_EXCEEDED, "no verdict yet; replaying again is safe");
    } else {
        free(ticket);
    }
    return item;
}

static size_t replay_group(struct gateway *gateway, struct replay_verdict *verdicts, size_t count,
                           const atomic_bool *cancel, struct arena *arena)
{
    struct group *group = NEW(struct group);
    struct ticket *tickets[GROUP];
    bool put[GROUP];
    size_t done = 0, bytes = 0;
    mutex_init(&group->lock, LOCK_LISTENER);
    cond_init(&group->decided);
    group->refs = 1;
    for (; done < count && done < GROUP && bytes < GROUP_BYTES_MAX; done++) {
        tickets[done] = NEW(struct ticket);
        tickets[done]->item.group = group;
        mutex_lock(&group->lock);
        group->open++;
        group->refs++;
        mutex_unlock(&group->lock);
        put[done] = letter_put(gateway, verdicts[done].id, tickets[done], &bytes);
        if (!put[done]) {
            mutex_lock(&group->lock);
            group->open--;
            group->refs--;
            mutex_unlock(&group->lock);
        }
    }
    (void)buffers_flush(gateway->buffers, STR_EMPTY, STR_EMPTY, FLUSH_COMMAND);
    gateway->wake_flushers(gateway);
    struct rules *rules = gateway_rules(gateway);
    uint64_t wait_ns = rules->config->wait_for_async_insert_timeout;
    rules_unref(rules);
    group_wait(gateway, group, clock_mono_ns(gateway->clock) + wait_ns, cancel);
    for (size_t i = 0; i < done; i++) {
        struct item item;
        if (put[i]) {
            item = ticket_take(group, tickets[i]);
        } else {
            item = tickets[i]->item;
            free(tickets[i]);
        }
        report(gateway, &item, arena, &verdicts[i]);
        shape_unref(item.shape);
    }
    group_unref(group);
    return done;
}

bool replay_all_ids(struct gateway *gateway, struct arena *arena, struct letter_choice *choice, struct err *err)
{
    struct dlq_stats stats;
    dlq_get_stats(gateway->dlq, &stats);
    size_t cap = (size_t)stats.letters + LIST_PAGE, found = 0;
    uint64_t *out = ARENA_ARRAY(arena, uint64_t, cap), after = 0;
    while (found < cap) {
        struct arena *page = arena_new(65536);
        struct letter *letters = NULL;
        size_t got = 0;
        bool ok = dlq_list(gateway->dlq, after, MIN((size_t)LIST_PAGE, cap - found), page, &letters, &got, err);
        for (size_t i = 0; ok && i < got; i++)
            after = out[found++] = letters[i].id;
        arena_free(page);
        if (!ok)
            return false;
        if (got == 0)
            break;
    }
    *choice = (struct letter_choice){ out, found };
    return true;
}

/* Room for a verdict on each letter, whose ids stand in it. */
static bool begin(struct gateway *gateway, const struct letter_choice *choice, struct arena *arena,
                  struct replay_verdicts *out, struct err *err)
{
    struct letter_choice all = *choice;
    if (choice->ids == NULL && !replay_all_ids(gateway, arena, &all, err))
        return false;
    *out = (struct replay_verdicts){ ARENA_ARRAY(arena, struct replay_verdict, all.count + 1), all.count };
    for (size_t i = 0; i < all.count; i++)
        out->verdicts[i] = (struct replay_verdict){ .id = all.ids[i], .verdict = "missing", .message = "" };
    return true;
}

static bool cancelled(const atomic_bool *cancel)
{
    return atomic_load_explicit(cancel, memory_order_relaxed);
}

bool replay_letters(struct gateway *gateway, const struct letter_choice *choice, const atomic_bool *cancel,
                    struct arena *arena, struct replay_verdicts *out, struct err *err)
{
    if (!begin(gateway, choice, arena, out, err))
        return false;
    size_t done = 0;
    while (done < out->count && !cancelled(cancel))
        done += replay_group(gateway, out->verdicts + done, out->count - done, cancel, arena);
    out->count = done;
    return true;
}

static void try_letter(struct gateway *gateway, struct replay_verdict *verdict, struct arena *arena)
{
    struct arena *own = arena_new(4096);
    struct letter letter;
    struct shape *shape = NULL;
    struct err err = { 0 };
    if (dlq_get(gateway->dlq, verdict->id, own, &letter, &err) && letter_shape(gateway, &letter, own, &shape, &err)) {
        struct insert *insert = letter_insert(gateway, &letter, shape);
        sink_store_check(gateway->sink, insert);
        err = insert->err;
        verdict->rows = insert->rows;
        if (insert->outcome == INSERT_REJECTED)
            refuse(verdict, &err, arena);
        else
            verdict->verdict = insert->outcome == INSERT_DUPLICATE ? "duplicate" : "would_store";
        insert_free(insert);
    } else {
        refuse(verdict, &err, arena);
    }
    shape_unref(shape);
    arena_free(own);
}

bool replay_try(struct gateway *gateway, const struct letter_choice *choice, const atomic_bool *cancel,
                struct arena *arena, struct replay_verdicts *out, struct err *err)
{
    if (!begin(gateway, choice, arena, out, err))
        return false;
    size_t done = 0;
    for (; done < out->count && !cancelled(cancel); done++)
        try_letter(gateway, &out->verdicts[done], arena);
    out->count = done;
    return true;
}

bool replay_drop(struct gateway *gateway, const struct letter_choice *choice, struct arena *arena,
                 struct replay_verdicts *out, struct err *err)
{
    if (!begin(gateway, choice, arena, out, err))
        return false;
    for (size_t i = 0; i < out->count; i++) {
        struct err problem = { 0 };
        struct replay_verdict *verdict = &out->verdicts[i];
        uint64_t rows = 0;
        if (!dlq_drop(gateway->dlq, verdict->id, &rows, &problem)) {
            refuse(verdict, &problem, arena);
            continue;
        }
        verdict->verdict = "dropped";
        ledger_move(gateway->ledger, LEDGER_LETTERS, LEDGER_DISCARDED, 1, rows, STR_EMPTY);
    }
    return true;
}

/* ---- edit, import ---- */

/* As metrics name it. */
static struct str letter_table(const struct letter *letter, struct arena *arena)
{
    return str_of(arena_printf(arena, STR_FMT "." STR_FMT, STR_ARG(letter->database), STR_ARG(letter->table)));
}

static void apply_edit(void *context, struct letter *letter)
{
    const struct letter_edit *edit = context;
    const struct {
        struct str *field;
        struct str value;
    } changes[] = { { &letter->database, edit->database }, { &letter->table, edit->table },
                    { &letter->columns, edit->columns },   { &letter->format, edit->format },
                    { &letter->token, edit->token },       { &letter->body, edit->body } };
    for (size_t i = 0; i < ARRAY_COUNT(changes); i++)
        if (changes[i].value.data != NULL)
            *changes[i].field = changes[i].value;
}

/* Whether the letter, as it is in arena, means something; its statement and the number of its rows then. */
static bool understand(struct gateway *gateway, struct letter *letter, struct arena *arena, struct err *err)
{
    struct shape *shape = NULL;
    if (letter->table.len == 0)
        return err_set(err, ERR_BAD_ARGUMENTS, "a letter needs a table");
    if (!letter_shape(gateway, letter, arena, &shape, err))
        return false;
    letter->query = arena_dup(arena, shape->query);
    letter->rows = shape_count_rows(shape, letter->body);
    shape_unref(shape);
    return true;
}

struct whole_edit {
    struct letter_edit edit;
    struct str query;
    uint64_t rows, rows_before;
};
static void apply_whole_edit(void *context, struct letter *letter)
{
    struct whole_edit *whole = context;
    apply_edit(&whole->edit, letter);
    letter->query = whole->query;
    whole->rows_before = letter->rows;
    letter->rows = whole->rows;
}

static void book_edit(struct gateway *gateway, const struct whole_edit *whole, const struct letter *letter,
                      struct arena *arena)
{
    uint64_t more = whole->rows > whole->rows_before ? whole->rows - whole->rows_before : 0;
    uint64_t less = whole->rows_before + more - whole->rows;
    struct ledger_entry entry = { 0 };
    ledger_add(&entry, LEDGER_ACCEPTED, LEDGER_LETTERS, 0, more);
    ledger_add(&entry, LEDGER_LETTERS, LEDGER_DISCARDED, 0, less);
    ledger_post(gateway->ledger, &entry, letter_table(letter, arena));
}

static void edit_letter(struct gateway *gateway, struct replay_verdict *verdict, const struct letter_edit *edit,
                        struct arena *arena)
{
    struct arena *own = arena_new(4096);
    struct whole_edit whole = { .edit = *edit };
    struct letter letter;
    struct err err = { 0 };
    char token[UUID_TEXT_BYTES];
    if (edit->token.data != NULL && edit->token.len == 0) {
        rng_uuid4_text(gateway->rng, token);
        whole.edit.token = str_of(token);
    }
    bool ok = dlq_get(gateway->dlq, verdict->id, own, &letter, &err);
    if (ok) {
        apply_edit(&whole.edit, &letter);
        ok = understand(gateway, &letter, own, &err);
        whole.query = letter.query;
        whole.rows = letter.rows;
    }
    ok = ok && dlq_change(gateway->dlq, verdict->id, apply_whole_edit, &whole, &err);
    if (ok) {
        verdict->verdict = "edited";
        book_edit(gateway, &whole, &letter, own);
    } else {
        refuse(verdict, &err, arena);
    }
    arena_free(own);
}

bool replay_edit(struct gateway *gateway, const struct letter_choice *choice, const struct letter_edit *edit,
                 struct arena *arena, struct replay_verdicts *out, struct err *err)
{
    if (!begin(gateway, choice, arena, out, err))
        return false;
    for (size_t i = 0; i < out->count; i++)
        edit_letter(gateway, &out->verdicts[i], edit, arena);
    return true;
}

void replay_import(struct gateway *gateway, struct letter *letter, struct arena *arena, struct replay_verdict *verdict)
{
    char *token = ARENA_ARRAY(arena, char, UUID_TEXT_BYTES);
    struct err err = { 0 };
    *verdict = (struct replay_verdict){ .verdict = "imported", .message = "" };
    if (letter->token.len == 0) {
        rng_uuid4_text(gateway->rng, token);
        letter->token = str_of(token);
    }
    if (!understand(gateway, letter, arena, &err) || !dlq_add(gateway->dlq, letter, &err)) {
        refuse(verdict, &err, arena);
        return;
    }
    verdict->id = letter->id;
    ledger_move(gateway->ledger, LEDGER_ACCEPTED, LEDGER_LETTERS, 1, letter->rows, letter_table(letter, arena));
    metric_series_add(metric_series1(METRIC_DEAD_LETTERS_ADDED, str_of(err_name((enum err_code)letter->code))), 1);
}
