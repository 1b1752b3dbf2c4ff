#!/usr/bin/env bash
# format.sh ROOT: clang-format would change nothing. Another clang-format than Debian 12's may see it otherwise.
. "$(dirname "$0")/common.sh"

if ! command -v clang-format >/dev/null; then
    echo "format: skipped: clang-format is not installed"
    exit 77
fi
# shellcheck disable=SC2086 # folders are words
take_findings < <(c_files $product_folders tests bench examples |
    { xargs -r -n 20 -P "$(nproc)" clang-format --dry-run -Werror 2>&1 || true; } |
    sed -nE 's/^([^ ]+:[0-9]+):[0-9]+: error.*/\1: is not as clang-format would have it/p' | sort -t: -u -k1,1)
finish format
