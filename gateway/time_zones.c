/* time_zones.c: see time_zones.h. Some 600 files of 1 to 4 KiB. */
#include "gateway/time_zones.h"

#include <stdio.h>

#include "base/log.h"
#include "format/timezone.h"
#include "format/type.h"

static const char database[] = "/usr/share/zoneinfo";
enum { ZONE_BYTES_MAX = 64 << 10 };

void time_zones_load(struct fs *fs)
{
    struct strbuf tzif = { 0 };
    size_t missing = 0;
    for (size_t i = 0; type_timezone_name(i) != NULL; i++) {
        const char *name = type_timezone_name(i);
        char path[PATH_BYTES];
        struct err err = { 0 };
        strbuf_clear(&tzif);
        snprintf(path, sizeof(path), "%s/%s", database, name);
        if (!fs_read_file(fs, path, ZONE_BYTES_MAX, &tzif, &err))
            missing++;
        else if (!timezone_register(str_of(name), strbuf_view(&tzif), &err))
            log_warn("time zone left out: name=%s error=%s", name, err.text);
    }
    if (missing > 0)
        log_warn("time zones not found: count=%zu dir=%s hint=install_tzdata", missing, database);
    strbuf_fini(&tzif);
}
