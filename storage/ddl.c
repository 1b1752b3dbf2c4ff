/* ddl.c: changing a definition: back to a spec, edited, built anew. */
#include "storage/ddl.h"

#include "storage/ddl_settings.h"
#include "storage/ddl_statement.h"
#include "storage/expr_text.h"

void table_spec_of(const struct table_def *def, struct arena *arena, struct table_spec *spec)
{
    const struct schema *schema = def->schema;
    *spec = (struct table_spec){ .database = def->database,
                                 .name = def->name,
                                 .uuid = str_of(def->uuid),
                                 .engine = def->engine,
                                 .engine_args_count = def->engine_args_count,
                                 .partition_text = def->partition_text,
                                 .order_text = def->order_text,
                                 .primary_text = def->primary_text,
                                 .ttl_text = def->ttl_text,
                                 .comment = def->comment,
                                 .version = schema->version,
                                 .next_field_id = def->next_field_id,
                                 .has_columns = true,
                                 .has_engine = true,
                                 .extras_count = def->extras_count,
                                 .settings_count = def->settings_given_count };
    struct column_spec *columns = table_spec_insert(spec, arena, 0, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        const struct schema_column *from = &schema->columns[i];
        columns[i] = (struct column_spec){ .name = from->name,
                                           .type_text = from->type->text,
                                           .default_kind = from->default_kind,
                                           .default_text = from->default_text,
                                           .comment = from->comment,
                                           .codec_text = from->codec_text,
                                           .ttl_text = from->ttl_text,
                                           .field_id = from->field_id };
    }
    spec->engine_args = ARENA_ARRAY(arena, struct str, def->engine_args_count + 1);
    for (size_t i = 0; i < def->engine_args_count; i++)
        spec->engine_args[i] = def->engine_args[i];
    spec->extras = ARENA_ARRAY(arena, struct str, def->extras_count + 1);
    for (size_t i = 0; i < def->extras_count; i++)
        spec->extras[i] = def->extras[i];
    spec->constraints_count = spec->constraints_cap = def->constraints_count;
    spec->constraints = ARENA_ARRAY(arena, struct table_constraint, def->constraints_count);
    for (size_t i = 0; i < def->constraints_count; i++)
        spec->constraints[i] = def->constraints[i];
    spec->settings = ARENA_ARRAY(arena, struct table_setting, def->settings_given_count + 1);
    for (size_t i = 0; i < def->settings_given_count; i++)
        spec->settings[i] = def->settings_given[i];
}

/* ---- ALTER ---- */

static bool find_column(const struct table_spec *spec, struct str name, size_t *at)
{
    for (*at = 0; *at < spec->columns_count; (*at)++)
        if (str_eq(spec->columns[*at].name, name))
            return true;
    return false;
}

static bool add_columns(struct table_spec *spec, const struct alter_command *command, struct arena *arena,
                        struct err *err)
{
    size_t at = command->first ? 0 : spec->columns_count, found;
    if (command->after.len > 0) {
        if (!find_column(spec, command->after, &found))
            return err_set(err, ERR_NO_SUCH_COLUMN_IN_TABLE,
                           "Wrong column name. Cannot find column " STR_FMT " to insert after",
                           STR_ARG(command->after));
        at = found + 1;
    }
    for (size_t i = 0; i < command->columns_count; i++) {
        const struct column_spec *column = &command->columns[i];
        if (find_column(spec, column->name, &found)) {
            if (command->if_not_exists)
                continue;
            return err_set(err, ERR_DUPLICATE_COLUMN,
                           "Cannot add column `" STR_FMT "`: column with this name already exists",
                           STR_ARG(column->name));
        }
        *table_spec_insert(spec, arena, at++, 1) = *column;
    }
    return true;
}

/* The name of an index, from its clause. */
static struct str index_name(struct str clause, struct arena *arena)
{
    struct lexer lexer;
    struct strbuf name = { 0 };
    struct err err;
    lexer_init(&lexer, clause);
    bool ok = lexer_take_word(&lexer, "INDEX") && lexer_take_name(&lexer, &name, &err);
    must(ok); /* it was printed by ddl_take_index */
    struct str copy = arena_dup(arena, strbuf_view(&name));
    strbuf_fini(&name);
    return copy;
}

static bool find_index(const struct table_spec *spec, struct str name, struct arena *arena, size_t *at)
{
    for (*at = 0; *at < spec->extras_count; (*at)++)
        if (str_eq(index_name(spec->extras[*at], arena), name))
            return true;
    return false;
}

static bool add_index(struct table_spec *spec, const struct alter_command *command, struct arena *arena,
                      struct err *err)
{
    struct str name = index_name(command->text, arena);
    size_t at;
    if (find_index(spec, name, arena, &at))
        return command->if_not_exists ||
               err_set(err, ERR_ILLEGAL_COLUMN, "Cannot add index " STR_FMT ": index with this name already exists",
                       STR_ARG(name));
    struct str *extras = ARENA_ARRAY(arena, struct str, spec->extras_count + 1);
    for (size_t i = 0; i < spec->extras_count; i++)
        extras[i] = spec->extras[i];
    extras[spec->extras_count++] = command->text;
    spec->extras = extras;
    return true;
}

static bool drop_index(struct table_spec *spec, const struct alter_command *command, struct arena *arena,
                       struct err *err)
{
    size_t at;
    if (!find_index(spec, command->text, arena, &at))
        return command->if_exists ||
               err_set(err, ERR_BAD_ARGUMENTS, "Wrong index name. Cannot find index `" STR_FMT "` to drop",
                       STR_ARG(command->text));
    for (; at + 1 < spec->extras_count; at++)
        spec->extras[at] = spec->extras[at + 1];
    spec->extras_count--;
    return true;
}

static bool find_constraint(const struct table_spec *spec, struct str name, size_t *at)
{
    for (*at = 0; *at < spec->constraints_count; (*at)++)
        if (str_eq(spec->constraints[*at].name, name))
            return true;
    return false;
}

static bool add_constraint(struct table_spec *spec, const struct alter_command *command, struct arena *arena,
                           struct err *err)
{
    size_t at;
    if (!find_constraint(spec, command->constraint.name, &at))
        return table_spec_add_constraint(spec, arena, &command->constraint, err);
    return command->if_not_exists ||
           err_set(err, ERR_ILLEGAL_COLUMN,
                   "Cannot add constraint " STR_FMT ": constraint with this name already exists",
                   STR_ARG(command->constraint.name));
}

static bool drop_constraint(struct table_spec *spec, const struct alter_command *command, struct err *err)
{
    size_t at;
    if (!find_constraint(spec, command->text, &at))
        return command->if_exists ||
               err_set(err, ERR_BAD_ARGUMENTS, "Wrong constraint name. Cannot find constraint `" STR_FMT "` to drop",
                       STR_ARG(command->text));
    for (; at + 1 < spec->constraints_count; at++)
        spec->constraints[at] = spec->constraints[at + 1];
    spec->constraints_count--;
    return true;
}

static void set_settings(struct table_spec *spec, const struct alter_command *command, struct arena *arena)
{
    struct table_setting *settings =
        ARENA_ARRAY(arena, struct table_setting, spec->settings_count + command->settings_count);
    for (size_t i = 0; i < spec->settings_count; i++)
        settings[i] = spec->settings[i];
    spec->settings = settings;
    for (size_t i = 0; i < command->settings_count; i++) {
        size_t at = 0;
        while (at < spec->settings_count && !str_eq(settings[at].name, command->settings[i].name))
            at++;
        settings[at] = command->settings[i];
        spec->settings_count = MAX(spec->settings_count, at + 1);
    }
}

/* Parts are sorted and split by their keys, so the names in those stay. */
static bool is_in_key(const struct table_spec *spec, struct str name)
{
    bool found = expr_text_mentions(spec->order_text, name) || expr_text_mentions(spec->partition_text, name) ||
                 expr_text_mentions(spec->primary_text, name);
    for (size_t i = 0; i < spec->engine_args_count; i++)
        found = found || expr_text_mentions(spec->engine_args[i], name);
    return found;
}

/* The place of a command's column; false with *absent where IF EXISTS lets it be none. */
static bool take_place(const struct table_spec *spec, const struct alter_command *command, struct str name,
                       const char *verb, size_t *at, bool *absent, struct err *err)
{
    *absent = !find_column(spec, name, at);
    return !*absent || command->if_exists ||
           err_set(err, ERR_NOT_FOUND_COLUMN_IN_BLOCK, "Wrong column name. Cannot find column `" STR_FMT "` to %s",
                   STR_ARG(name), verb);
}

static bool key_column(struct str name, const char *verb, struct err *err)
{
    return err_set(err, ERR_ALTER_OF_COLUMN_IS_FORBIDDEN,
                   "Trying to ALTER %s key " STR_FMT " column which is a part of key expression", verb, STR_ARG(name));
}

static bool drop_column(struct table_spec *spec, const struct alter_command *command, struct err *err)
{
    size_t at;
    bool absent;
    if (!take_place(spec, command, command->column, "drop", &at, &absent, err))
        return false;
    if (absent)
        return true;
    if (is_in_key(spec, command->column))
        return key_column(command->column, "DROP", err);
    spec->columns_count--;
    memmove(&spec->columns[at], &spec->columns[at + 1], (spec->columns_count - at) * sizeof *spec->columns);
    return true;
}

/* Of an index, whose name and type may be spelt like a column. */
static struct str rename_in_index(struct str clause, struct str from, struct str to, struct arena *arena)
{
    struct lexer lexer;
    struct strbuf text = { 0 };
    struct expr_text expr;
    struct err err;
    lexer_init(&lexer, clause);
    bool ok = lexer_take_word(&lexer, "INDEX") && lexer_take_name(&lexer, &text, &err);
    size_t begin = lexer_peek(&lexer).offset;
    ok = ok && expr_text_parse(&lexer, arena, &expr, &err);
    must(ok); /* it was printed by ddl_take_index */
    strbuf_clear(&text);
    strbuf_add(&text, str_sub(clause, 0, begin));
    strbuf_add(&text, expr_text_rename(expr.text, from, to, arena));
    strbuf_add_char(&text, ' ');
    strbuf_add(&text, str_from(clause, lexer_peek(&lexer).offset));
    struct str renamed = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    return renamed;
}

/* In all that may name a column but the keys. */
static void rename_in_expressions(struct table_spec *spec, struct str from, struct str to, struct arena *arena)
{
    for (size_t i = 0; i < spec->columns_count; i++) {
        spec->columns[i].default_text = expr_text_rename(spec->columns[i].default_text, from, to, arena);
        spec->columns[i].ttl_text = expr_text_rename(spec->columns[i].ttl_text, from, to, arena);
    }
    for (size_t i = 0; i < spec->extras_count; i++)
        spec->extras[i] = rename_in_index(spec->extras[i], from, to, arena);
    for (size_t i = 0; i < spec->constraints_count; i++)
        spec->constraints[i].text = expr_text_rename(spec->constraints[i].text, from, to, arena);
    spec->ttl_text = expr_text_rename(spec->ttl_text, from, to, arena);
}

static bool rename_column(struct table_spec *spec, const struct alter_command *command, struct arena *arena,
                          struct err *err)
{
    size_t at, other;
    bool absent;
    if (!take_place(spec, command, command->column, "rename", &at, &absent, err))
        return false;
    if (absent)
        return true;
    if (find_column(spec, command->text, &other))
        return err_set(err, ERR_DUPLICATE_COLUMN,
                       "Cannot rename to `" STR_FMT "`: column with this name already exists", STR_ARG(command->text));
    if (is_in_key(spec, command->column))
        return key_column(command->column, "RENAME", err);
    spec->columns[at].name = command->text;
    rename_in_expressions(spec, command->column, command->text, arena);
    return true;
}

static bool is_computed(enum default_kind kind)
{
    return kind == DEFAULT_ALIAS || kind == DEFAULT_EPHEMERAL;
}

/* Its type stays, and whether parts have it; what the command does not name stays too. */
static bool modify_column(struct table_spec *spec, const struct alter_command *command, struct arena *arena,
                          struct err *err)
{
    const struct column_spec *to = &command->columns[0];
    const struct type *type;
    size_t at;
    bool absent;
    if (!take_place(spec, command, to->name, "modify", &at, &absent, err))
        return false;
    if (absent)
        return true;
    struct column_spec *column = &spec->columns[at];
    if (to->type_text.len > 0 && (!type_parse(to->type_text, arena, &type, err)))
        return false;
    bool changes_default = to->default_kind != DEFAULT_NONE;
    if ((to->type_text.len > 0 && !str_eq(type->text, column->type_text)) ||
        (changes_default && is_computed(to->default_kind) != is_computed(column->default_kind)))
        return err_set(err, ERR_NOT_IMPLEMENTED,
                       "ALTER TABLE ... MODIFY COLUMN does not change the type of a column here: add one, and drop the "
                       "old one");
    if (changes_default) {
        column->default_kind = to->default_kind;
        column->default_text = to->default_text;
    }
    column->comment = to->comment.len > 0 ? to->comment : column->comment;
    column->codec_text = to->codec_text.len > 0 ? to->codec_text : column->codec_text;
    column->ttl_text = to->ttl_text.len > 0 ? to->ttl_text : column->ttl_text;
    return true;
}

static bool reset_settings(struct table_spec *spec, const struct alter_command *command, struct err *err)
{
    for (size_t i = 0; i < command->settings_count; i++) {
        struct str name = command->settings[i].name;
        size_t kept = 0;
        if (!table_settings_known(name))
            return err_set(err, ERR_BAD_ARGUMENTS,
                           "Cannot reset setting '" STR_FMT "' because it doesn't exist for MergeTree engines family",
                           STR_ARG(name));
        for (size_t k = 0; k < spec->settings_count; k++)
            if (!str_eq(spec->settings[k].name, name))
                spec->settings[kept++] = spec->settings[k];
        spec->settings_count = kept;
    }
    return true;
}

static bool alter(struct table_spec *spec, const struct alter_command *command, struct arena *arena, struct err *err)
{
    size_t at;
    bool absent;
    switch (command->kind) {
    case ALTER_ADD_COLUMN:
        return add_columns(spec, command, arena, err);
    case ALTER_DROP_COLUMN:
        return drop_column(spec, command, err);
    case ALTER_RENAME_COLUMN:
        return rename_column(spec, command, arena, err);
    case ALTER_MODIFY_COLUMN:
        return modify_column(spec, command, arena, err);
    case ALTER_COMMENT_COLUMN:
        if (!take_place(spec, command, command->column, "comment", &at, &absent, err))
            return false;
        if (!absent)
            spec->columns[at].comment = command->text;
        return true;
    case ALTER_MODIFY_TTL:
        spec->ttl_text = command->text;
        return true;
    case ALTER_REMOVE_TTL:
        if (spec->ttl_text.len == 0)
            return err_set(err, ERR_BAD_ARGUMENTS, "Table doesn't have any table TTL expression, cannot remove.");
        spec->ttl_text = STR_EMPTY;
        return true;
    case ALTER_MODIFY_COMMENT:
        spec->comment = command->text;
        return true;
    case ALTER_MODIFY_SETTING:
        set_settings(spec, command, arena);
        return true;
    case ALTER_ADD_INDEX:
        return add_index(spec, command, arena, err);
    case ALTER_DROP_INDEX:
        return drop_index(spec, command, arena, err);
    case ALTER_ADD_CONSTRAINT:
        return add_constraint(spec, command, arena, err);
    case ALTER_DROP_CONSTRAINT:
        return drop_constraint(spec, command, err);
    case ALTER_RESET_SETTING:
        return reset_settings(spec, command, err);
    case ALTER_DROP_PARTITION:
    case ALTER_DETACH_PARTITION:
    case ALTER_ATTACH_PARTITION:
        break;
    }
    return true;
}

bool table_spec_alter(struct table_spec *spec, const struct alter_command *commands, size_t count, struct arena *arena,
                      struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (!alter(spec, &commands[i], arena, err))
            return false;
    spec->version++;
    return true;
}
