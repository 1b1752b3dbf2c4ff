/* engine_settings.c: a sorted table and a binary search. */
#include "config/engine_settings.h"

#include "base/must.h"

static const struct engine_setting table[] = {
#define X(name, type, value) { name, type, value },
#include "config/engine_settings.inc"
#undef X
};

const struct engine_setting *engine_setting_find(struct str name)
{
    size_t low = 0, high = ARRAY_COUNT(table);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(name, str_of(table[middle].name));
        if (order == 0)
            return &table[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

size_t engine_settings_count(void)
{
    return ARRAY_COUNT(table);
}

const struct engine_setting *engine_setting_at(size_t index)
{
    must(index < ARRAY_COUNT(table));
    return &table[index];
}
