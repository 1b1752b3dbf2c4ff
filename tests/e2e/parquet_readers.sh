#!/bin/sh
# parquet_readers.sh SAMPLES ORACLE: what parquet_samples writes is read alike by DuckDB, hyparquet and, where it is
# installed, ClickHouse (chdb); every page has its checksum; predicates on the sort key are answered without the other
# row groups and pages. Needs node and the readers of SLUICE_ORACLE_DIR or ORACLE; skipped without.
set -eu
samples=$1
oracle=${SLUICE_ORACLE_DIR:-$2}/readers
command -v node >/dev/null || { echo "skipped: no node"; exit 77; }
[ -d "$oracle/node_modules/hyparquet" ] || { echo "skipped: no readers in $oracle (script/test installs them)"; exit 77; }
readers=duckdb,hyparquet
if [ -d "$oracle/node_modules/chdb" ]; then
    readers=$readers,chdb
else
    echo "without ClickHouse: no chdb in $oracle (script/test --oracle installs it)"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$samples" "$dir" >"$dir/list"

cd "$oracle"
# pages-*: known to differ between readers (nanoseconds, other bytes than UTF-8), only looked at page by page.
node check.mjs compare --compact --readers "$readers" $(grep -v '^pages-' "$dir/list" | sed "s|^|$dir/|") >"$dir/compare" || {
    grep -v '"verdict":"exact"' "$dir/compare" || true
    exit 1
}
count=$(grep -c '"verdict":"exact"' "$dir/compare")
[ "$count" -eq "$(grep -vc '^pages-' "$dir/list")" ] || { echo "some files were not compared"; exit 1; }

while read -r file; do
    node check.mjs pages "$dir/$file" >"$dir/pages"
    if grep -q -e pages_error -e index_error -e '"crc": "BAD"' "$dir/pages" || ! grep -q -e '"crc": "ok"' -e '"crc": "present"' "$dir/pages"; then
        echo "$file: bad pages"
        exit 1
    fi
done <"$dir/list"

# DuckDB skips row groups, ClickHouse pages too. prune asks both, so it takes chdb.
case $readers in
*chdb*)
    for where in "c0 = 30000" "c0 = 50000" "c0 between 8000 and 8100"; do
        node check.mjs prune "$dir/sorted.parquet" "$where" >"$dir/prune"
        if [ "$(grep -c '"chdb": "skips them"' "$dir/prune")" != 2 ] || ! grep -q '"duckdb": "skips them"' "$dir/prune"; then
            cat "$dir/prune"
            exit 1
        fi
    done
    ;;
esac
echo "$count files read alike by $readers"
