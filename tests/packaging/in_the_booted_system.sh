#!/bin/bash
# What package_test runs as a service of the booted system. The last line says whether every step passed.
set -uo pipefail
steps=0
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
install_it() {
    again
    dpkg -i /package-test/sluice.deb >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fail "dpkg -i"; }
    wait_for 20 "an active service" is_state active
}
rows() { sluice query 'SELECT count() FROM t FORMAT TabSeparated'; }
status_of() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(property MainPID)/status"; }
modes() { stat -c '%a %U:%G' "$@" | tr '\n' ' '; }

install_it
expect "enabled" enabled "$(systemctl is-enabled sluice)"
expect "type" notify "$(property Type)"
ok "installed: the service is enabled and says that it is ready"

expect "modes" "750 root:sluice 640 root:sluice 750 sluice:sluice " "$(modes /etc/sluice $config /var/lib/sluice)"
getent passwd sluice >/dev/null || fail "no user sluice"
ok "configuration and data are for root and the service only"

expect "user" "$(id -u sluice)" "$(status_of Uid | cut -f1)"
expect "capabilities" 0000000000000000 "$(status_of CapEff)"
expect "no new privileges" 1 "$(status_of NoNewPrivs)"
expect "seccomp" 2 "$(status_of Seccomp)"
ok "it runs as user sluice, without capabilities, filtered"

sluice query 'CREATE TABLE t (id UInt64, name String) ENGINE = MergeTree ORDER BY id' || fail "CREATE TABLE"
echo '{"id":1,"name":"one"}' | sluice insert t || fail "insert"
echo '{"id":2,"name":"two"}' | sluice insert t --ack buffered || fail "buffered insert"
sluice flush || fail "flush"
expect "rows" $'1\tone\n2\ttwo' "$(sluice query 'SELECT id, name FROM t ORDER BY id FORMAT TabSeparated')"
expect "status" yes "$(sluice status | sed -n 's/^ready *//p')"
ok "inserted and read back over loopback"

echo '{"id":3,"name":"three"}' | sluice insert t --ack buffered || fail "buffered insert"
systemctl restart sluice || fail "restart"
expect "rows" 3 "$(rows)"
expect "result" success "$(property Result)"
ok "a restart keeps what was stored and what was buffered"

before=$(property NRestarts)
kill -KILL "$(property MainPID)"
wait_for 20 "a restart after SIGKILL" has_restarted "$before"
expect "rows" 3 "$(rows)"
ok "killed, it is started again, with its rows"

again
mkdir -p /run/systemd/system/sluice.service.d
printf '[Service]\nWatchdogSec=2\nTimeoutAbortSec=2\n' >/run/systemd/system/sluice.service.d/watchdog.conf
systemctl daemon-reload && systemctl restart sluice || fail "restart with a short watchdog"
before=$(property NRestarts)
sleep 6
expect "restarts of a service that pings" "$before" "$(property NRestarts)"
kill -STOP "$(property MainPID)"
wait_for 30 "a restart by the watchdog" has_restarted "$before"
rm -r /run/systemd/system/sluice.service.d
systemctl daemon-reload && systemctl restart sluice || fail "restart"
expect "rows" 3 "$(rows)"
ok "the watchdog is pinged; hung, the service is started again"

again
cp -p $config /tmp/config
echo 'no_such_setting: 1' >>$config
systemctl restart sluice 2>/dev/null && fail "started with a bad configuration"
sleep 4
expect "state" failed "$(property ActiveState)"
expect "exit status" 78 "$(property ExecMainStatus)"
expect "restarts" 0 "$(property NRestarts)"
journalctl -u sluice --no-pager -o cat | grep -q 'sluice.yaml:.*no_such_setting' || fail "the log does not name the setting"
cp -p /tmp/config $config
again
systemctl start sluice || fail "start"
ok "a bad configuration is named in the log; no restart is tried"

echo '# an administrator was here' >>$config
chmod 600 $config
chown sluice $config
pid=$(property MainPID)
install_it
grep -q 'an administrator was here' $config || fail "the edit of $config is gone"
expect "modes" "600 sluice:sluice " "$(modes $config)"
[ "$(property MainPID)" != "$pid" ] || fail "installed again, but the old program still runs"
expect "rows" 3 "$(rows)"
ok "installed again: restarted, the edited configuration is kept, and so are the rows"

dpkg -r sluice >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fail "dpkg -r"; }
is_state active && fail "removed, but it runs"
[ -e $config ] && [ -d /var/lib/sluice/tables ] || fail "remove took the configuration or the data"
ok "removed: it stopped; configuration and data stay"

install_it
expect "rows" 3 "$(rows)"
dpkg -P sluice >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fail "dpkg -P"; }
grep -q 'holds rows or dead letters and was left there' /tmp/dpkg || { cat /tmp/dpkg; fail "purge is silent"; }
[ ! -e /etc/sluice ] || fail "purge left the configuration"
[ -d /var/lib/sluice/tables ] || fail "purge took the rows"
getent passwd sluice >/dev/null || fail "purge took the user"
ok "purged: the configuration is gone, the rows and the user stay"

install_it
expect "rows" 3 "$(rows)"
sluice query 'CREATE TABLE u (id UInt64) ENGINE = MergeTree ORDER BY id' || fail "CREATE TABLE"
echo '{"id":"x"}' | sluice insert u --ack buffered || fail "buffered insert of a bad row"
sluice flush
expect "dead letters" 1 "$(sluice status | sed -n 's/^dead_letters *//p')"
sluice query 'DROP TABLE t' && sluice query 'DROP TABLE u' || fail "DROP TABLE"
systemctl stop sluice
find /var/lib/sluice -name '*.parquet' -delete
dpkg -P sluice >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fail "dpkg -P"; }
[ -d /var/lib/sluice/dlq ] || fail "purge took a dead letter"
ok "purged: a dead letter stays"

rm -r /var/lib/sluice
install_it
dpkg -P sluice >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fail "dpkg -P"; }
[ ! -e /var/lib/sluice ] || fail "purge left an empty store"
ok "purged: a store without rows goes too"

echo "all $steps steps passed"
