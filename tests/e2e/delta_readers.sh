#!/bin/sh
# delta_readers.sh SAMPLE ORACLE: a published table of a thousand versions with checkpoints is replayed without a gap, and
# DuckDB, hyparquet and, where it is installed, ClickHouse read the same rows; the same once the versions below the newest
# checkpoint are gone. Needs node and the readers of SLUICE_ORACLE_DIR or ORACLE; skipped without.
set -eu
sample=$1
readers=${SLUICE_ORACLE_DIR:-$2}/readers
command -v node >/dev/null || { echo "skipped: no node"; exit 77; }
[ -d "$readers/node_modules/hyparquet" ] || { echo "skipped: no readers in $readers (script/test installs them)"; exit 77; }
list=duckdb,hyparquet
[ ! -d "$readers/node_modules/chdb" ] || list=$list,chdb
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$sample" "$dir/data" 1000 >"$dir/made"
read -r table rows <"$dir/made"
cd "$readers"

compare() {
    node check.mjs compare --compact --readers "$list" "$table" >"$dir/compare" || { cat "$dir/compare"; exit 1; }
    wrong=$(grep -o '"rows":[0-9]*' "$dir/compare" | grep -vc "^\"rows\":$rows\$" || true)
    if [ "$wrong" != 0 ] || ! grep -q '"verdict":"exact"' "$dir/compare" || ! grep -q '"checkpoint":9[0-9][0-9]' "$dir/compare"; then
        echo "$1: want $rows rows and a checkpoint over 900"
        cat "$dir/compare"
        exit 1
    fi
}

compare "all versions"
checkpoint=$(ls "$table/_delta_log" | sed -n 's/^\([0-9]*\)\.checkpoint\.parquet$/\1/p' | tail -n 1)
node check.mjs compare --compact --readers duckdb,hyparquet,chdb "$table/_delta_log/$checkpoint.checkpoint.parquet" |
    grep -q -e '"verdict":"exact"' -e '"verdict":"lenient"' || { echo "the checkpoint itself is read differently"; exit 1; }
for commit in "$table"/_delta_log/*.json; do
    [ "$(basename "$commit" .json)" -ge "$checkpoint" ] 2>/dev/null || rm "$commit"
done
compare "cleaned"
echo "$rows rows of 1000 versions read alike by $list"
