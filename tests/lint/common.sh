# common.sh: what the lints share. A lint is called with the root of a tree and fails when it finds something.
set -euo pipefail
LC_ALL=C
export LC_ALL
cd "${1:?usage: $0 ROOT}"
product_folders="base config format storage dlq buffer gateway cli"
findings=0

# complain FILE[:LINE] TEXT: one finding.
complain() {
    printf '%s: %s\n' "$1" "$2"
    findings=$((findings + 1))
}

# finish NAME: the verdict; the last line of every lint.
finish() {
    if [ "$findings" -gt 0 ]; then
        echo "$1: $findings found"
        exit 1
    fi
    echo "$1: nothing found"
}

# c_files FOLDER...: the C files in those folders that are there.
c_files() {
    local folder
    for folder in "$@"; do
        [ ! -d "$folder" ] || find "$folder" -name node_modules -prune -o -type f \( -name '*.c' -o -name '*.h' \) -print
    done | sort
}

# For awk programs: strip(TEXT) gives a line of C without comments and without what is inside of its literals; state is
# kept from line to line, so call it for every line and set in_comment = 0 when FNR is 1.
awk_strip='
function strip(text,    out, at, rest) {
    out = ""
    for (;;) {
        if (in_comment) {
            at = index(text, "*/")
            if (at == 0) return out
            text = substr(text, at + 2)
            in_comment = 0
            out = out " "
        }
        if (!match(text, /"|\047|\/\/|\/\*/)) return out text
        out = out substr(text, 1, RSTART - 1)
        rest = substr(text, RSTART)
        if (substr(rest, 1, 2) == "//") return out
        if (substr(rest, 1, 2) == "/*") {
            in_comment = 1
            text = substr(rest, 3)
        } else if (match(rest, /^"([^"\\]|\\.)*"/) || match(rest, /^\047([^\047\\]|\\.)*\047/)) {
            out = out "\"\""
            text = substr(rest, RLENGTH + 1)
        } else {
            out = out substr(rest, 1, 1)
            text = substr(rest, 2)
        }
    }
}
'

# take_findings: reads lines FILE:LINE: TEXT as findings.
take_findings() {
    local line
    while IFS= read -r line; do
        printf '%s\n' "$line"
        findings=$((findings + 1))
    done
}
