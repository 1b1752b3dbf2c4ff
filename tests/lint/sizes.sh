#!/usr/bin/env bash
# sizes.sh ROOT: no C file is longer than 1,500 lines.
. "$(dirname "$0")/common.sh"

# shellcheck disable=SC2086 # folders are words
take_findings < <(c_files $product_folders tests bench examples |
    xargs -r awk 'FNR == 1501 { print FILENAME ": more than 1500 lines" }')
finish sizes
