#!/usr/bin/env bash
# reliability.sh ROOT: each test that docs/RELIABILITY.md or docs/robustness-record.md names as `FILE:TEXT` is there: the
# file, and the text in it.
. "$(dirname "$0")/common.sh"

pages=(docs/RELIABILITY.md docs/robustness-record.md)
take_findings < <(grep -ohE '`tests/[^`]*`' "${pages[@]}" | tr -d '`' | sort -u | while IFS= read -r named; do
    file=${named%%:*} text=${named#*:}
    case $named in *:*) ;; *) continue ;; esac
    if [ ! -f "$file" ]; then
        echo "${pages[*]}: there is no $file"
    elif ! grep -qF -- "$text" "$file"; then
        echo "${pages[*]}: $file does not have \"$text\""
    fi
done)
finish reliability
