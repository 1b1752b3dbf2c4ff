#!/usr/bin/env bash
# layers.sh ROOT: a folder includes itself and what its row names, and each foreign library has its place.
. "$(dirname "$0")/common.sh"

# shellcheck disable=SC2086 # folders are words
take_findings < <(c_files $product_folders | xargs -r awk '
BEGIN {
    knows["base"] = " base "
    knows["config"] = " config base "
    knows["format"] = " format base "
    knows["storage"] = " storage base format "
    knows["dlq"] = " dlq base "
    knows["buffer"] = " buffer base format dlq "
    knows["gateway"] = " gateway base config format storage dlq buffer "
    knows["cli"] = " cli base config format storage dlq buffer " # not gateway: it talks HTTP to it
    place["lmdb.h"] = "^dlq/(dlq_lmdb[.]c|lmdb_env[.][ch]|lmdb_verify[.]c)$"
    place["microhttpd.h"] = "^gateway/"
    place["curl/curl.h"] = "^(gateway|cli)/"
    place["sqlite3.h"] = "^storage/"
    place["yaml.h"] = "^config/"
}
FNR == 1 { folder = FILENAME; sub(/\/.*/, "", folder) }
/^[ \t]*#[ \t]*include[ \t]*"/ {
    path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
    top = path; sub(/\/.*/, "", top)
    if (top == path)
        print FILENAME ":" FNR ": \"" path "\" does not start at the root"
    else if (index(knows[folder], " " top " ") == 0)
        print FILENAME ":" FNR ": " folder "/ may not include \"" path "\""
}
/^[ \t]*#[ \t]*include[ \t]*</ {
    path = $0; sub(/^[^<]*</, "", path); sub(/>.*/, "", path)
    if (path in place && FILENAME !~ place[path])
        print FILENAME ":" FNR ": <" path "> does not belong here"
}
/MHD_create_post_processor/ { print FILENAME ":" FNR ": no MHD post-processor: bodies are ours to parse" }')
finish layers
