#!/usr/bin/env bash
# leftovers.sh ROOT: nothing is left for later, and no path of somebody's machine is in the tree.
. "$(dirname "$0")/common.sh"

marks='TO''DO|FIX''ME|X''XX|HA''CK'
paths='(^|[^A-Za-z0-9_.])/(wor''k|roo''t|hom''e)/[a-z]'
folders=""
for folder in $product_folders tests bench examples script packaging docs cmake .ci; do
    [ ! -d "$folder" ] || folders="$folders $folder"
done
while IFS=: read -r file line text; do
    complain "$file:$line" "$text"
done < <(grep -rnIE --exclude-dir=node_modules --exclude-dir=cases --exclude-dir=data --exclude-dir=corpus \
    "\\b($marks)\\b|$paths" $folders | cut -c1-200 || true)
finish leftovers
