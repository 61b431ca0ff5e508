#!/bin/bash
# vuln.sh runs govulncheck against the database that deps.sh made. A vulnerability in a module that
# we call is a failure: raise its version. One in the standard library is only told, since what
# repairs it is a newer Go on the machine that builds.
set -uo pipefail
cd "$(dirname "$0")/.."
cache=${HOPWIRE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hopwire}
report=$("$cache/bin/govulncheck" -db "file://$cache/vulndb" ./... 2>&1)
status=$?
if [ $status = 3 ] && ! grep -q '^  Module: ' <<<"$report"; then
  echo "vuln: nothing in modules; the standard library of $(go env GOVERSION) has, until Go is upgraded:"
  grep -A1 '^Vulnerability #' <<<"$report" | grep -v '^--'
  exit 0
fi
[ $status = 0 ] || { echo "$report"; exit $status; }
echo "vuln: nothing that is called"
