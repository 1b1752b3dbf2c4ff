#!/usr/bin/env bash
# reliability.sh ROOT: each test that docs/RELIABILITY.md names as `FILE:TEXT` is there: the file, and the text in it.
. "$(dirname "$0")/common.sh"

take_findings < <(grep -oE '`tests/[^`]*`' docs/RELIABILITY.md | tr -d '`' | sort -u | while IFS= read -r named; do
    file=${named%%:*} text=${named#*:}
    case $named in *:*) ;; *) continue ;; esac
    if [ ! -f "$file" ]; then
        echo "docs/RELIABILITY.md: there is no $file"
    elif ! grep -qF -- "$text" "$file"; then
        echo "docs/RELIABILITY.md: $file does not have \"$text\""
    fi
done)
finish reliability
