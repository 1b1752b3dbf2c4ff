#!/usr/bin/env bash
# selftest.sh: every lint passes a good tree and finds what is wrong in a bad one.
set -euo pipefail
lints=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

good_tree() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/{base,config,format,storage,dlq,buffer,gateway,cli,tests/unit/base}
    cp "$lints/../../.clang-format" "$tree/"
    cat >"$tree/base/str.h" <<'END'
/* str.h: a word. open("a comment may say malloc(1)") */
#ifndef SLUICE_BASE_STR_H
#define SLUICE_BASE_STR_H
int str_rename(int x);
#endif
END
    cat >"$tree/base/crash_points.h" <<'END'
#ifndef SLUICE_BASE_CRASH_POINTS_H
#define SLUICE_BASE_CRASH_POINTS_H
/* clang-format off */
#define CRASH_POINTS(X) \
    X("a.b")
/* clang-format on */
#define CRASH_POINT(name) ((void)0)
#endif
END
    cat >"$tree/gateway/x.c" <<'END'
#include <microhttpd.h>

#include "base/crash_points.h"
#include "base/str.h"

struct fs {
    int (*rename)(int x);
};

int use(struct fs *fs)
{
    CRASH_POINT("a.b");
    return fs->rename(str_rename(1)); /* atoi( in a comment */
}

const char *text = "strcpy(a, b) in a text";
END
}

# check LINT FILE TEXT: with TEXT at the end of FILE the lint fails and names the file.
check() {
    local lint=$1 file=$2 text=$3 out status=0
    good_tree
    mkdir -p "$tree/$(dirname "$file")"
    printf '%b\n' "$text" >>"$tree/$file"
    out=$("$lints/$lint.sh" "$tree" 2>&1) || status=$?
    if [ "$status" -eq 77 ]; then
        echo "skipped: $lint: $out"
    elif [ "$status" -ne 1 ] || [[ $out != *"$file"* ]]; then
        echo "NOT FOUND by $lint (status $status): $file: $text"
        echo "$out" | sed 's/^/    /'
        failures=$((failures + 1))
    fi
}

good_tree
for lint in layers banned headers format sizes leftovers crash_points log_formats; do
    status=0
    out=$("$lints/$lint.sh" "$tree" 2>&1) || status=$?
    if [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; then
        echo "$lint complains about a good tree: $out"
        failures=$((failures + 1))
    fi
done

check layers base/bad.c '#include "config/config.h"'
check layers format/bad.h '#include "storage/table.h"'
check layers buffer/bad.c '#include "storage/table.h"'
check layers storage/bad.c '#  include "dlq/dlq.h"'
check layers cli/bad.c '#include "gateway/request.h"'
check layers base/bad.c '#include "str.h"'
check layers dlq/bad.c '#include <lmdb.h>'
check layers buffer/bad.c '#include <microhttpd.h>'
check layers storage/bad.c '#include <curl/curl.h>'
check layers gateway/bad.c 'void *p = MHD_create_post_processor;'

check banned gateway/bad.c 'int f(char *a) { return atoi(a); }'
check banned tests/unit/base/bad.c 'void f(char *a, char *b) { strcpy (a, b); }'
check banned format/bad.c 'void *f(void) { return malloc(3); }'
check banned storage/bad.c 'int f(void) {\n    return open("x", 0);\n}'
check banned storage/bad.c 'void f(void) { if (rename("a", "b")) return; }'
check banned buffer/bad.c '#include <unistd.h>\nlong f(int d) { return write(d, "x", 1); }'
check banned tests/sim/bad.c 'void f(void) { usleep(3); }'
check banned gateway/bad.c 'void *f(void) { return fopen("x", "r"); }'
check banned base/bad.c 'long f(void) { return time(0); }'
check banned gateway/bad.c 'int f(void) { return !rand(); }'
check banned dlq/bad.c 'char *f(void) { return getenv("X"); }'

check headers base/bad.h '#ifndef SLUICE_BASE_BAD_H\n#define SLUICE_BASE_BAD_H\nstruct str f(void);\nuint64_t g(void);\n#endif'
check headers base/bad.h '#ifndef BAD_H\n#define BAD_H\n#endif'
check format base/bad.c 'int  f ( void ) { return 1 ; }'
check sizes base/bad.c "$(printf '\\n%.0s' $(seq 1501))"
check leftovers base/bad.c '/* TO''DO: later */'
check log_formats base/bad.c 'void f(void) { log_info("it happened: %s", x); }'
check log_formats base/bad.c 'void f(void) { log_info("it happened: a=%d a=%s", x, y); }'
check leftovers script/bad 'cp x /hom''e/me/x'
check crash_points base/bad.c 'void f(void) { CRASH_POINT("c.d"); }'
check reliability docs/RELIABILITY.md '`tests/unit/base/nothing.c:a_test`'
check crash_points base/crash_points.h '    X("never.used")'

echo "lint self-test: $failures failed"
[ "$failures" -eq 0 ]
