#!/bin/bash
# The deb in the booted system. The last line says whether every step passed.
. /package-test/booted.sh

install_deb() { # FILE
    again
    DEBIAN_FRONTEND=noninteractive dpkg --force-confold -i "$1" >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fail "dpkg -i $1"; }
    wait_for 20 "an active service" is_state active
}
install_it() { install_deb /package-test/sluice.deb; }
version() { dpkg-query -W -f '${Version}' sluice; }

install_it
expect "enabled" enabled "$(systemctl is-enabled sluice)"
expect "type" notify "$(property Type)"
ok "installed: the service is enabled and says that it is ready"

expect "modes" "750 root:sluice 640 root:sluice 640 root:sluice 750 sluice:sluice " \
    "$(modes /etc/sluice $config /etc/default/sluice /var/lib/sluice)"
getent passwd sluice >/dev/null || fail "no user sluice"
ok "configuration and data are for root and the service only"

expect "user" "$(id -u sluice)" "$(status_of Uid | cut -f1)"
expect "capabilities" 0000000000000000 "$(status_of CapEff)"
expect "no new privileges" 1 "$(status_of NoNewPrivs)"
expect "seccomp" 2 "$(status_of Seccomp)"
ok "it runs as user sluice, without capabilities, filtered"

table_with_three_rows
expect "status" yes "$(sluice status | sed -n 's/^ready *//p')"
ok "inserted and read back over loopback"

systemctl restart sluice || fail "restart"
expect "rows" 3 "$(rows)"
expect "result" success "$(property Result)"
ok "a restart keeps what was stored and what was spooled"

sh /package-test/insert-and-read-back >/tmp/autopkgtest 2>&1 || { cat /tmp/autopkgtest; fail "the package's own test"; }
ok "the package's own test passes"

for ack in stored spooled buffered; do
    again
    under_load $ack systemctl restart sluice
done
ok "restarts under load lose nothing"

systemctl reload sluice || fail "reload"
wait_for 20 "the end of the reload" is_state active
expect "rows" 3 "$(rows)"
ok "it reloads"

again
systemctl stop sluice
systemctl enable --now sluice.socket 2>/dev/null || fail "sluice.socket"
systemctl start sluice || fail "start by socket"
under_load stored systemctl restart sluice
expect "refused or unknown to senders, with the socket held" "0 0" "$(of_load refused) $(of_load unknown)"
systemctl disable --now sluice.socket 2>/dev/null
again
systemctl restart sluice || fail "restart"
expect "rows" 3 "$(rows)"
ok "with sluice.socket a restart refuses no connection"

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

pid=$(property MainPID)
under_load stored install_deb /package-test/next.deb
expect "version" "$(dpkg-deb -f /package-test/next.deb Version)" "$(version)"
grep -q 'an administrator was here' $config || fail "the edit of $config is gone"
grep -q 'new in the next version' $config.dpkg-dist || fail "the new configuration was not put beside it"
[ "$(property MainPID)" != "$pid" ] || fail "upgraded, but the old program still runs"
expect "rows" 3 "$(rows)"
ok "upgraded under load: nothing is lost, the edited configuration is kept"

under_load spooled install_it
expect "version" "$(dpkg-deb -f /package-test/sluice.deb Version)" "$(version)"
expect "rows" 3 "$(rows)"
ok "downgraded under load: nothing is lost"

sluice drain --wait 60s >/dev/null || fail "drain"
wait_for 20 "its end" is_state inactive # the admin port closes a moment before
sluice verify /var/lib/sluice >/tmp/verify || { cat /tmp/verify; fail "verify"; }
systemctl start sluice || fail "start"
sluice doctor >/tmp/doctor || { cat /tmp/doctor; fail "doctor"; }
ok "every byte of it checks, and the doctor finds no failure"

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
sluice query 'DROP TABLE t' && sluice query 'DROP TABLE IF EXISTS upclick' && sluice query 'DROP TABLE u' || fail "DROP TABLE"
systemctl stop sluice
find /var/lib/sluice -name '*.parquet' -delete
dpkg -P sluice >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fail "dpkg -P"; }
[ -d /var/lib/sluice/dlq ] || fail "purge took a dead letter"
ok "purged: a dead letter stays"

install_it
echo 'sluice sluice/purge-data boolean true' | debconf-set-selections
dpkg -P sluice >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fail "dpkg -P"; }
[ ! -e /var/lib/sluice ] || fail "purge was told to delete the data, and did not"
ok "purged, with sluice/purge-data: the data goes too"

install_it
dpkg -P sluice >/tmp/dpkg 2>&1 || { cat /tmp/dpkg; fail "dpkg -P"; }
[ ! -e /var/lib/sluice ] || fail "purge left an empty store"
ok "purged: a store without rows goes too"

echo "all $steps steps passed"
