#!/bin/sh
# parquet_corpus.sh PARQUET_ROWS DIR: every file of DIR/index.tsv, a collection of public test files and damaged ones, is
# read as recorded from other readers, or refused where that is what is expected. Skipped where DIR is not there.
#
# Columns of the index that count here: 1 file, 11 what is expected (rows, either, error, unclear), 12 SHA-256 of the
# canonical rows, 14 the same with NULL lists, maps and groups as empty ones, which is all that our columns can hold.
set -eu
rows=$1
dir=$2
[ -f "$dir/index.tsv" ] || { echo "skipped: no Parquet files in $dir"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tab=$(printf '\t')

tail -n +2 "$dir/index.tsv" | cut -f 1,11,12,14 | sed "s/$tab$tab/$tab-$tab/g; s/$tab\$/$tab-/" |
    while IFS="$tab" read -r file expect hash lenient; do
        [ "$lenient" = - ] && lenient=$hash
        # Two columns of one name: the readers that were asked hand over one of them twice.
        [ "$file" = odd/duckdb--bug13053-2.parquet ] && expect=unclear
        status=0
        "$rows" "$dir/$file" >"$work/rows" 2>"$work/error" || status=$?
        [ "$status" -le 1 ] || { echo "CRASHED $status $file"; continue; }
        found=$(sha256sum <"$work/rows" | cut -d ' ' -f 1)
        case $expect.$status in
        rows.0 | either.0)
            if [ "$found" = "$lenient" ] || [ "$found" = "$hash" ]; then echo "read $file"; else echo "DIFFERS $file"; fi
            ;;
        rows.1) echo "NOT READ $file: $(head -n 1 "$work/error")" ;;
        error.0) case $file in odd/*) echo "read $file" ;; *) echo "NOT REFUSED $file" ;; esac ;;
        *) echo "fine $file: $(head -n 1 "$work/error")" ;;
        esac
    done >"$work/results"

grep -c . "$work/results" | sed 's/$/ files/'
if grep -E '^(CRASHED|DIFFERS|NOT)' "$work/results"; then
    exit 1
fi
