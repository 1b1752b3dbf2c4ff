#!/bin/bash
# The rpm in the booted system, which is Debian's: its programs, unit and scriptlets, by rpm itself. The last line says
# whether every step passed.
. /package-test/booted.sh

rpm_does() { # OPTION... FILE
    again
    rpm --nodeps "$@" >/tmp/rpm 2>&1 || { cat /tmp/rpm; fail "rpm $*"; }
}
version() { rpm -q --qf '%{VERSION}-%{RELEASE}' sluice; }

rpm_does -i /package-test/sluice.rpm
getent passwd sluice >/dev/null || fail "no user sluice"
systemctl daemon-reload && systemctl start sluice || fail "start"
expect "modes" "750 root:sluice 640 root:sluice 640 root:sluice 750 sluice:sluice " \
    "$(modes /etc/sluice $config /etc/sysconfig/sluice /var/lib/sluice)"
expect "user" "$(id -u sluice)" "$(status_of Uid | cut -f1)"
ok "installed and started, under its own user"

table_with_three_rows
systemctl restart sluice || fail "restart"
expect "rows" 3 "$(rows)"
ok "inserted and read back; a restart keeps it all"

echo '# an administrator was here' >>$config
pid=$(property MainPID)
under_load stored rpm_does -U /package-test/next.rpm
expect "release" 2 "$(version | sed 's/.*-//')"
wait_for 20 "an active service" is_state active
[ "$(property MainPID)" != "$pid" ] || fail "upgraded, but the old program still runs"
grep -q 'an administrator was here' $config || fail "the edit of $config is gone"
expect "rows" 3 "$(rows)"
ok "upgraded under load: nothing is lost, the edited configuration is kept"

under_load spooled rpm_does -U --oldpackage /package-test/sluice.rpm
expect "release" 1 "$(version | sed 's/.*-//')"
wait_for 20 "an active service" is_state active
expect "rows" 3 "$(rows)"
ok "downgraded under load: nothing is lost"

rpm_does -e sluice
is_state active && fail "removed, but it runs"
[ -e $config.rpmsave ] && [ -d /var/lib/sluice/tables ] || fail "erased the edited configuration or the data"
[ ! -e /usr/bin/sluice ] && [ ! -e /usr/sbin/sluiced ] || fail "a program is still there"
ok "erased: it stopped; the edited configuration and the data stay"

echo "all $steps steps passed"
