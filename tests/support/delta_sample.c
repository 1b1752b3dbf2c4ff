/* delta_sample DIR VERSIONS: a published table with so many versions, merges and checkpoints among them, in DIR, for
 * other readers. Prints the table's folder and its number of rows. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "storage/table_impl.h"
#include "tests/unit/storage/store_fixture.h"

int main(int argc, char **argv)
{
    enum { MERGE_EVERY = 40 };
    struct fixture f;
    struct table_stats stats = { 0 };
    uint64_t versions = 0;
    if (argc != 3 || !str_to_u64(str_of(argv[2]), &versions))
        return 2;
    log_configure(LOG_WARN, LOG_LOGFMT);
    fixture_init(&f, fs_posix(), argv[1], 1);
    fixture_open(&f);
    ddl(&f, "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k SETTINGS publish = 'delta'");
    struct table *t = find_table(&f, "t");
    for (uint64_t k = 0; stats.delta_version + 1 < (int64_t)versions; k++) {
        insert(t, (struct row[]){ { (int32_t)(k % 3), k, "row" } }, 1, "");
        if (k % MERGE_EVERY == MERGE_EVERY - 1)
            ddl(&f, "OPTIMIZE TABLE t FINAL");
        store_publish_step(f.store, f.clock.mono, true);
        clock_manual_advance(&f.clock, NS_PER_S);
        table_get_stats(t, &stats);
    }
    printf("%s/tables/default/t %llu\n", argv[1], (unsigned long long)stats.rows);
    table_unref(t);
    fixture_close(&f);
    return 0;
}
