#!/usr/bin/env bash
# crash_points.sh ROOT: the names in base/crash_points.h are the names in the source, both ways.
. "$(dirname "$0")/common.sh"

listed=$(sed -nE 's/^[ \t]*X\("([^"]+)"\).*/\1/p' base/crash_points.h | sort)
used=$(c_files $product_folders | grep -v '^base/crash_points\.' | xargs -r grep -hoE 'CRASH_POINT\("[^"]+"\)' | cut -d'"' -f2 | sort -u)
for name in $(comm -23 <(echo "$listed") <(echo "$used")); do
    complain base/crash_points.h "$name is listed, but no CRASH_POINT() has that name"
done
for name in $(comm -13 <(echo "$listed") <(echo "$used")); do
    complain "$(grep -rlF "CRASH_POINT(\"$name\")" $(c_files $product_folders) | head -n 1)" "CRASH_POINT(\"$name\") is not in base/crash_points.h"
done
for name in $(uniq -d <<<"$listed"); do
    complain base/crash_points.h "$name is listed twice"
done
finish crash_points
