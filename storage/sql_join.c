/* sql_join.c: ANY, SEMI, ANTI and ASOF JOIN, told as joins that SQLite has: a side whose rows are thinned out first, to
 * one for each key of the condition, and, of ANTI, a mark by which its presence is noticed.
 *
 * The closest row of an ASOF JOIN: of the rows with equal keys each holds from its own moment to that of the next. */
#include <string.h>

#include "format/sql_types.h"
#include "storage/sql_fn.h"

enum side { SIDE_NONE, SIDE_LEFT, SIDE_RIGHT, SIDE_BOTH };

struct terms { /* of the ON clause, by what they are about */
    struct sql_resolver *r;
    struct sql_table *right;
    struct sql_node **all;
    size_t count;
};

static struct sql_node *behind(struct sql_node *node)
{
    while (node->emit == SQL_EMIT_NODE && node->target != NULL)
        node = node->target;
    return node;
}

/* Whose columns the expression reads. What is looked up elsewhere counts as both. */
static enum side side_of(const struct terms *terms, struct sql_node *node)
{
    node = behind(node);
    if (node->emit == SQL_EMIT_COLUMN)
        return node->table == terms->right ? SIDE_RIGHT : SIDE_LEFT;
    if (node->query != NULL)
        return SIDE_BOTH;
    unsigned sides = SIDE_NONE;
    for (size_t i = 0; i < node->args_count; i++)
        sides |= side_of(terms, node->args[i]);
    if (node->target != NULL) /* of IN: the converted list */
        sides |= side_of(terms, node->target);
    return (enum side)sides;
}

static void split(struct terms *terms, struct sql_node *node)
{
    struct sql_node *plain = behind(node);
    if (plain->kind == SQL_CALL && str_is(plain->name, "and")) {
        for (size_t i = 0; i < plain->args_count; i++)
            split(terms, plain->args[i]);
        return;
    }
    struct sql_node **all = ARENA_ARRAY(terms->r->arena, struct sql_node *, terms->count + 1);
    if (terms->count > 0)
        memcpy(all, terms->all, terms->count * sizeof *all);
    all[terms->count++] = node;
    terms->all = all;
}

static bool refused(const struct terms *terms, const char *what, struct err *err)
{
    return err_set(err, ERR_NOT_IMPLEMENTED, "%s is not supported here (at position %zu)", what,
                   terms->right->offset + 1);
}

/* The argument of a comparison that is of that side, where the other argument is of the other; NULL: it is not so. */
static struct sql_node *operand(const struct terms *terms, struct sql_node *comparison, enum side side)
{
    for (size_t i = 0; i < 2; i++)
        if (side_of(terms, comparison->args[i]) == side &&
            (side_of(terms, comparison->args[1 - i]) | side) == SIDE_BOTH)
            return comparison->args[i];
    return NULL;
}

/* The rows of that side, one for each of its keys in equalities. */
static bool thin_out(const struct terms *terms, struct sql_table *table, enum side side, struct err *err)
{
    struct arena *arena = terms->r->arena;
    struct sql_thinning *thinning = table->thinning = ARENA_NEW(arena, struct sql_thinning);
    thinning->keys = ARENA_ARRAY(arena, struct sql_node *, terms->count);
    thinning->conditions = ARENA_ARRAY(arena, struct sql_node *, terms->count);
    for (size_t i = 0; i < terms->count; i++) {
        struct sql_node *term = behind(terms->all[i]), *key = NULL;
        enum side of = side_of(terms, term);
        if (of == side)
            thinning->conditions[thinning->conditions_count++] = term;
        if (of != SIDE_BOTH)
            continue;
        if (term->kind == SQL_CALL && str_is(term->name, "equals"))
            key = operand(terms, term, side);
        if (key != NULL)
            thinning->keys[thinning->keys_count++] = key;
        else if (term != terms->right->closeness)
            return refused(terms, "ANY, SEMI or ASOF JOIN ON more than equal keys", err);
    }
    return thinning->keys_count > 0 || refused(terms, "ANY, SEMI or ASOF JOIN without equal keys", err);
}

/* >, >=, < or <= between the sides: by which a row is close. */
static bool find_closeness(struct terms *terms, struct err *err)
{
    static const char *const names[] = { "greater", "greaterOrEquals", "less", "lessOrEquals" };
    struct sql_node *found = NULL;
    for (size_t i = 0; i < terms->count; i++) {
        struct sql_node *term = behind(terms->all[i]);
        for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
            if (term->kind != SQL_CALL || !str_is(term->name, names[n]) || side_of(terms, term) != SIDE_BOTH)
                continue;
            if (found != NULL)
                return refused(terms, "ASOF JOIN with more than one inequality", err);
            found = term;
        }
    }
    if (found == NULL || operand(terms, found, SIDE_RIGHT) == NULL)
        return refused(terms, "ASOF JOIN without an inequality between its tables", err);
    terms->right->closeness = found;
    return true;
}

/* ... AND (next IS NULL OR NOT inequality of next) */
static bool closest(struct terms *terms, struct err *err)
{
    struct sql_table *right = terms->right;
    struct arena *arena = terms->r->arena;
    struct sql_node *term = right->closeness, *moment = operand(terms, term, SIDE_RIGHT);
    enum sql_rep rep = sql_rep_of(moment->type);
    if (rep != SQL_REP_INT && rep != SQL_REP_REAL)
        return refused(terms, "ASOF JOIN by this type", err);
    bool first = term->args[0] == moment;
    bool less = str_is(term->name, "less") || str_is(term->name, "lessOrEquals");
    right->thinning->moment = moment;
    right->thinning->next_is_later = first == less;
    struct sql_node *next = ARENA_NEW(arena, struct sql_node), *beyond = ARENA_NEW(arena, struct sql_node);
    *next = *moment;
    next->emit = SQL_EMIT_TEMPLATE;
    next->template = arena_printf(arena, "t%u.n", right->id);
    *beyond = *term;
    beyond->args = ARENA_ARRAY(arena, struct sql_node *, 2);
    beyond->args[first ? 0 : 1] = next;
    beyond->args[first ? 1 : 0] = term->args[first ? 1 : 0];
    struct sql_node *args[] = { right->on, next, beyond };
    struct sql_node *on = sql_node_call(terms->r, "and", args, ARRAY_COUNT(args), right->offset);
    on->state = SQL_RESOLVED;
    on->emit = SQL_EMIT_TEMPLATE;
    on->type = type_of_kind(TYPE_UINT8);
    on->template = "($0 AND ($1 IS NULL OR NOT $2))";
    right->on = on;
    return true;
}

/* RIGHT turns the sides around: only two tables can be. */
static bool thin_left(const struct terms *terms, struct sql_select *select, size_t index, struct err *err)
{
    if (index != 1)
        return refused(terms, "such a JOIN of more than two tables", err);
    return thin_out(terms, &select->tables[0], SIDE_LEFT, err);
}

bool sql_resolve_strictness(struct sql_resolver *r, struct sql_select *select, size_t index, struct err *err)
{
    struct sql_table *right = &select->tables[index];
    struct terms terms = { .r = r, .right = right };
    bool turned = right->join == SQL_JOIN_RIGHT, inner = right->join == SQL_JOIN_INNER;
    split(&terms, right->on);
    for (size_t i = 0; i < index; i++)
        if (right->join == SQL_JOIN_RIGHT || right->join == SQL_JOIN_FULL)
            if (select->tables[i].strictness != SQL_JOIN_ALL)
                return refused(&terms, "RIGHT or FULL JOIN after ANY, SEMI, ANTI or ASOF JOIN", err);
    switch (right->strictness) {
    case SQL_JOIN_ALL:
        return true;
    case SQL_JOIN_ANY:
        return (!(turned || inner) || thin_left(&terms, select, index, err)) &&
               (turned || thin_out(&terms, right, SIDE_RIGHT, err));
    case SQL_JOIN_SEMI:
        right->join = SQL_JOIN_INNER;
        return turned ? thin_left(&terms, select, index, err) : thin_out(&terms, right, SIDE_RIGHT, err);
    case SQL_JOIN_ANTI:
        if (turned && index != 1)
            return refused(&terms, "such a JOIN of more than two tables", err);
        (turned ? &select->tables[0] : right)->is_to_be_absent = true;
        return true;
    case SQL_JOIN_ASOF:
        return find_closeness(&terms, err) && thin_out(&terms, right, SIDE_RIGHT, err) && closest(&terms, err);
    }
    return false;
}
