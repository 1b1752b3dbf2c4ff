#!/usr/bin/env bash
# log_formats.sh ROOT: each line of the log is "what happened: key=value other=\"value\"", so that its fields can be told.
. "$(dirname "$0")/common.sh"

take_findings < <(c_files base config format storage dlq buffer gateway | xargs -r python3 -c '
import re, sys
call = re.compile(r"\blog_(?:debug|info|warn|error)\(\s*((?:\"(?:[^\"\\]|\\.)*\"|[A-Z][A-Za-z0-9_]*|\s)+)[,)]")
line = re.compile(r"[^:%=\"]+(?:: (?P<fields>[a-z][a-z0-9_]*=(?:\"[^\"]+\"|[^ \"]+)(?: [a-z][a-z0-9_]*=(?:\"[^\"]+\"|[^ \"]+))*))?")
for name in sys.argv[1:]:
    text = open(name).read()
    for found in call.finditer(text):
        pieces = re.findall(r"\"((?:[^\"\\]|\\.)*)\"|([A-Z]\w*)", found[1])
        format = "".join(literal.replace("\\\"", "\"") if not macro else "%s" if macro == "STR_FMT" else "x" for literal, macro in pieces)
        matched = line.fullmatch(format)
        keys = re.findall(r"(?:^| )([a-z0-9_]+)=", re.sub(r"\"[^\"]*\"", "", matched["fields"] or "")) if matched else []
        what = ("is no event and fields" if not matched else
                "has a key twice, or one of every line" if len(set(keys + ["time", "level", "event", "message", "suppressed"])) != len(keys) + 5 else None)
        if what:
            print("%s:%d: %s: %s" % (name, text.count("\n", 0, found.start()) + 1, what, format))
')
finish log_formats
