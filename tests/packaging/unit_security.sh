#!/usr/bin/env bash
# unit_security.sh: the shipped unit has no unknown key, its sandbox scores 1.5 or better, and its stop time leaves the
# daemon its own deadline.
set -euo pipefail
cd "$(dirname "$0")/../.."
unit=packaging/debian/sluice.service

seconds_of() { # FILE KEY SEPARATOR: a number of seconds
    sed -nE "s/^#?$2$3([0-9]+)s?\$/\1/p" "$1"
}
stop=$(seconds_of $unit TimeoutStopSec =)
deadline=$(seconds_of config/sluice.yaml 'shutdown\.deadline' ': ')
if [ -z "$stop" ] || [ -z "$deadline" ] || [ "$stop" -ne $((deadline + 30)) ]; then
    echo "TimeoutStopSec=$stop is not shutdown.deadline ($deadline s) and 30 s"
    exit 1
fi
echo "stop time: $deadline s of the daemon and 30 s"

if ! command -v systemd-analyze >/dev/null; then
    echo "skipped: systemd-analyze is not installed (package systemd)"
    exit 77
fi
# The programs need not be installed here.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sed 's|/usr/sbin/sluiced|/bin/true|' $unit >"$scratch/sluice.service"
systemd-analyze verify --man=no "$scratch/sluice.service" >"$scratch/said" 2>&1 || { cat "$scratch/said"; exit 1; }
if grep -F sluice.service "$scratch/said"; then # an unknown key is a warning, with exit status 0
    exit 1
fi
systemd-analyze security --offline=true --threshold=15 --no-pager "$scratch/sluice.service" | tail -n 1
