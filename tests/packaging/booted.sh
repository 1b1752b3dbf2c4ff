# Sourced by what runs in the booted system: steps, what systemd says of the service, and load across an event.
set -uo pipefail
steps=0 loads=0
config=/etc/sluice/sluice.yaml

fail() {
    echo "not ok: $*"
    systemctl status sluice --no-pager --lines=0 2>&1 | head -n 12
    journalctl -u sluice --no-pager --lines=20 -o cat 2>&1
    exit 1
}
ok() {
    steps=$((steps + 1))
    echo "ok $steps: $*"
}
expect() { # WHAT WANTED FOUND
    [ "$2" = "$3" ] || fail "$1: wanted '$2', found '$3'"
}
property() {
    systemctl show sluice --value --property "$1"
}
wait_for() { # SECONDS WHAT COMMAND...
    local tries=$(($1 * 10)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "$what did not come"
        sleep 0.1
    done
}
is_state() { [ "$(property ActiveState)" = "$1" ]; }
# Many starts in a minute are no sign of trouble here.
again() { systemctl reset-failed sluice 2>/dev/null || true; }
has_restarted() { [ "$(property NRestarts)" -gt "$1" ] && is_state active; }
rows() { sluice query 'SELECT count() FROM t FORMAT TabSeparated'; }
status_of() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(property MainPID)/status"; }
modes() { stat -c '%a %U:%G' "$@" | tr '\n' ' '; }
table_with_three_rows() {
    sluice query 'CREATE TABLE t (id UInt64, name String) ENGINE = MergeTree ORDER BY id' || fail "CREATE TABLE"
    echo '{"id":1,"name":"one"}' | sluice insert t || fail "insert"
    echo '{"id":2,"name":"two"}' | sluice insert t --ack buffered || fail "buffered insert"
    sluice flush || fail "flush"
    expect "rows" $'1\tone\n2\ttwo' "$(sluice query 'SELECT id, name FROM t ORDER BY id FORMAT TabSeparated')"
    echo '{"id":3,"name":"three"}' | sluice insert t --ack spooled || fail "spooled insert"
}
# One-row inserts from many senders while COMMAND runs; what was acknowledged has to be there, once.
under_load() { # ACK COMMAND...
    local ack=$1 load lost
    shift
    loads=$((loads + 1)) # a seed gives its rows their ids
    sluice load upclick --seed $loads --functions 100 --every 0.5 --duration 12 --retries 9 --timeout 10 --ack "$ack" -o json \
        >/tmp/load 2>/tmp/load.err &
    load=$!
    sleep 3 # into the load, with parts and buffers
    "$@"
    wait $load || { cat /tmp/load /tmp/load.err; fail "load of $ack inserts"; }
    lost=$(sed 's/.*"lost":\([0-9]*\),"twice":\([0-9]*\).*/\1 \2/' /tmp/load)
    expect "lost and doubled, $ack" "0 0" "$lost"
    echo "# $(cat /tmp/load)"
}
of_load() { sed "s/.*\"$1\":\([0-9]*\).*/\1/" /tmp/load; }
