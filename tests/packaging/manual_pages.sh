#!/usr/bin/env bash
# manual_pages.sh DIRECTORY SLUICED SLUICE: the pages name all of --help and every signal that the daemon takes, and groff
# has nothing to say about them.
set -euo pipefail
pages=$1 sluiced=$2 sluice=$3
missing=0

names_of() { # PROGRAM: what its --help calls options, settings and verbs
    "$1" --help | grep -oE -- '--[a-z][a-z-]*'
    "$1" --help | sed -nE 's/^  ([a-z_]+[a-z_.0-9]*) .*/\1/p'
}
for pair in "$sluiced sluiced.8" "$sluice sluice.1"; do
    read -r program page <<<"$pair"
    text=$(sed 's/\\-/-/g' "$pages/$page")
    for name in $(names_of "$program" | sort -u); do
        grep -qF -- "$name" <<<"$text" || { echo "$page does not name $name"; missing=1; }
    done
    echo "$page: $(names_of "$program" | sort -u | wc -l) names"
done
settings=$("$sluiced" --help | sed -n '/^Settings:/,$s/^  \([a-z_]\+[a-z_.0-9]*\) .*/\1/p')
for name in $settings; do
    grep -qF -- "$name" <(sed 's/\\-/-/g' "$pages/sluice.yaml.5") || { echo "sluice.yaml.5 does not name $name"; missing=1; }
done
echo "sluice.yaml.5: $(wc -w <<<"$settings") settings"
for verb in $("$sluice" --help | sed -n '/^Verbs:/,$s/^  \([a-z-]\+\).*/\1/p' | sort -u); do
    [ -f "$pages/sluice-$verb.1" ] || { echo "no page sluice-$verb.1"; missing=1; }
done
for signal in $(grep -oE 'case SIG[A-Z0-9]+' "$(dirname "$0")/../../gateway/runtime.c" | cut -d' ' -f2); do
    grep -qF -- "$signal" "$pages/sluiced.8" || { echo "sluiced.8 does not name $signal"; missing=1; }
done
[ $missing -eq 0 ]
if ! command -v groff >/dev/null; then
    echo "groff is not installed: only the names were checked"
    exit 0
fi
said=$(for page in "$pages"/*.[158]; do groff -man -ww -z -Tutf8 "$page" 2>&1; done)
[ -z "$said" ] || { echo "$said"; exit 1; }
echo "groff: no warning"
