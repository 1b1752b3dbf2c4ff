#!/bin/sh
# parquet_readers.sh SAMPLES ORACLE: what parquet_samples writes is read alike by DuckDB, ClickHouse and hyparquet, every
# page has its checksum, and predicates on the sort key are answered without the other pages. Needs node and the readers
# in SLUICE_ORACLE_DIR or ORACLE (installed by script/test --oracle); skipped without.
set -eu
samples=$1
oracle=${SLUICE_ORACLE_DIR:-$2}
command -v node >/dev/null || { echo "skipped: no node"; exit 77; }
[ -d "$oracle/node_modules" ] || { echo "skipped: no readers in $oracle"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$samples" "$dir" >"$dir/list"

cd "$oracle"
# pages-*: known to differ between readers (nanoseconds, other bytes than UTF-8), only looked at page by page.
node check.mjs compare --compact $(grep -v '^pages-' "$dir/list" | sed "s|^|$dir/|") >"$dir/compare" || {
    grep -v '"verdict":"exact"' "$dir/compare" || true
    exit 1
}
count=$(grep -c '"verdict":"exact"' "$dir/compare")
[ "$count" -eq "$(grep -vc '^pages-' "$dir/list")" ] || { echo "some files were not compared"; exit 1; }

while read -r file; do
    node check.mjs pages "$dir/$file" >"$dir/pages"
    if grep -q -e pages_error -e index_error -e '"crc": "BAD"' "$dir/pages" || ! grep -q '"crc": "ok"' "$dir/pages"; then
        echo "$file: bad pages"
        exit 1
    fi
done <"$dir/list"

# DuckDB skips row groups, ClickHouse pages too.
for where in "c0 = 30000" "c0 = 50000" "c0 between 8000 and 8100"; do
    node check.mjs prune "$dir/sorted.parquet" "$where" >"$dir/prune"
    if [ "$(grep -c '"chdb": "skips them"' "$dir/prune")" != 2 ] || ! grep -q '"duckdb": "skips them"' "$dir/prune"; then
        cat "$dir/prune"
        exit 1
    fi
done
echo "$count files read alike"
