#!/bin/sh
# fill.sh TEMPLATE PROGRAM OUT [VERB]: a manual page from its template and what PROGRAM [VERB] --help says. A line
# @SECTION Title@ becomes the entries under "Title:", @EXAMPLES Title@ the lines there as they are, @LINE Word@ the
# sentence that begins with Word, @VERSION@ the version, @VERB@ the verb. A title or word that --help does not have is an
# error.
set -eu
template=$1 program=$2 out=$3 verb=${4:-}
help=$("$program" ${verb:+"$verb"} --help)
version=$("$program" --version)
version=${version##* }

awk_roff='function roff(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); gsub(/"/, "\\(dq", text); return text }'

# An entry is a line indented by two, NAME with what follows it, then lines indented by six.
entries() {
    printf '%s\n' "$help" | awk -v title="$1:" "$awk_roff"'
        $0 == title { inside = 1; next }
        inside && /^$/ { exit }
        inside && /^      / { sub(/^ +/, ""); print roff($0); next }
        inside && /^  / { sub(/^ +/, ""); sub(/ +$/, ""); print ".TP\n.B \"" roff($0) "\""; found = 1 }
        END { exit !found }'
}
examples() {
    printf '%s\n' "$help" | awk -v title="$1:" "$awk_roff"'
        $0 == title { inside = 1; next }
        inside && /^$/ { exit }
        inside { sub(/^ +/, ""); print "\\&" roff($0); found = 1 }
        END { exit !found }'
}
sentence() {
    printf '%s\n' "$help" | awk -v start="$1" "$awk_roff"'
        index($0, start) == 1 { inside = 1; sub(/^[^:]*: /, "") }
        inside && /^$/ { exit }
        inside { print "\\&" roff($0); found = 1; if (/\.$/) exit }
        END { exit !found }'
}
while IFS= read -r line; do
    case $line in
    "@SECTION "*@) line=${line#@SECTION }; entries "${line%@}" ;;
    "@EXAMPLES "*@) line=${line#@EXAMPLES }; examples "${line%@}" ;;
    "@LINE "*@) line=${line#@LINE }; sentence "${line%@}" ;;
    *) printf '%s\n' "$line" | sed "s/@VERSION@/$version/g; s/@VERB@/$(printf %s "$verb" | sed 's/-/\\\\-/g')/g" ;;
    esac
done <"$template" >"$out.part"
mv "$out.part" "$out"
