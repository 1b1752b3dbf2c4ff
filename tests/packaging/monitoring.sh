#!/usr/bin/env bash
# monitoring.sh: the alert rules and the dashboard name only metrics that there are, each alert has a
# runbook and a test, and the rules fire when they have to.
set -euo pipefail
cd "$(dirname "$0")/../.."
files=(packaging/prometheus/sluice.rules.yml packaging/prometheus/sluice.rules.test.yml packaging/grafana/sluice.json)

known=$(sed -nE 's/^ *X\([A-Z0-9_]+, "([a-z0-9_]+)".*/\1/p' base/metric_names.h)
[ -n "$known" ] || { echo "no metrics in base/metric_names.h"; exit 1; }
unknown=$(grep -ohE '\b(sluice|process)_[a-z0-9_]+' "${files[@]}" | sort -u | sed -E 's/_(bucket|sum|count)$//' |
    sort -u | grep -vxF "$known" || true)
if [ -n "$unknown" ]; then
    echo "metrics that base/metric_names.h does not have: " $unknown
    exit 1
fi
python3 -m json.tool packaging/grafana/sluice.json >/dev/null
echo "names: $(grep -ohE '\b(sluice|process)_[a-z0-9_]+' "${files[@]}" | sort -u | wc -l), all known"

alerts=$(sed -nE 's/^ *- alert: //p' "${files[0]}")
[ -n "$alerts" ] || { echo "no alerts in ${files[0]}"; exit 1; }
missing=$(grep -vxF "$(sed -nE 's/^### //p' docs/OPERATIONS.md)" <<<"$alerts" || true)
if [ -n "$missing" ]; then
    echo "alerts without a section of docs/OPERATIONS.md: " $missing
    exit 1
fi
echo "runbooks: $(wc -l <<<"$alerts"), one for each alert"
untested=$(grep -vxF "$(grep -oE 'alertname: \w+' "${files[1]}" | cut -d' ' -f2)" <<<"$alerts" || true)
if [ -n "$untested" ]; then
    echo "alerts that no test of ${files[1]} fires: " $untested
    exit 1
fi

if ! command -v promtool >/dev/null; then
    echo "skipped: promtool is not installed (script/test brings it)"
    exit 77
fi
promtool check rules packaging/prometheus/sluice.rules.yml
promtool test rules packaging/prometheus/sluice.rules.test.yml
