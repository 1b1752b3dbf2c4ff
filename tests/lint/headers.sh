#!/usr/bin/env bash
# headers.sh ROOT: each header compiles alone, and its guard is made from its path.
. "$(dirname "$0")/common.sh"

check_header() {
    local header=$1 problem guard
    problem=$(${CC:-cc} -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -I. -Itests -fsyntax-only -x c -include "$header" \
        /dev/null 2>&1 | head -n 3) || true
    [ -z "$problem" ] || echo "$header: does not compile alone: $problem"
    guard=SLUICE_$(tr 'a-z/.' 'A-Z__' <<<"$header")
    grep -qx "#ifndef $guard" "$header" || echo "$header: the guard is not $guard"
}
export -f check_header

# shellcheck disable=SC2086 # folders are words
take_findings < <(c_files $product_folders tests/support tests/sim | grep '\.h$' |
    xargs -r -P "$(nproc)" -I {} bash -c 'check_header {}')
finish headers
