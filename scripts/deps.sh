#!/bin/bash
# deps.sh installs what lint and tests need and the Go toolchain cannot fetch by itself: Debian's
# ActiveMQ 5.17 with a JDK, ActiveMQ 6.3, the Jakarta generation of the JMS client, the JMS
# conformance tests, golangci-lint, govulncheck with its database, benchstat. Run as root on Debian;
# a second run finds everything there and takes a second. What is not a Debian package goes to $HOPWIRE_CACHE (default ~/.cache/hopwire).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
cache=${HOPWIRE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hopwire}
bin=$cache/bin
mkdir -p "$bin"

say() { echo "deps: $*"; }

# stamp FILES...: one word that changes when any of the files or the Go version does.
stamp() { { go env GOVERSION; cat "$@"; } | sha256sum | cut -c1-32; }

# current FOLDER WORD: whether FOLDER was filled under this stamp.
current() { [ -f "$1/.stamp" ] && [ "$(cat "$1/.stamp")" = "$2" ]; }

packages() {
  local need=()
  [ -f /usr/share/activemq/bin/activemq.jar ] || need+=(activemq)
  command -v javac >/dev/null || need+=(default-jdk-headless)
  command -v mvn >/dev/null || need+=(maven)
  [ ${#need[@]} -eq 0 ] && return
  if [ "$(id -u)" != 0 ]; then
    say "missing packages: ${need[*]}; run as root, or: apt-get install ${need[*]}" >&2
    exit 1
  fi
  say "apt-get install ${need[*]}"
  local log=$cache/apt.log
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
      apt-get install -q -y --no-install-recommends "${need[@]}"; } >"$log" 2>&1 </dev/null ||
    { tail -20 "$log" >&2; exit 1; }
}

# jars NAME WHAT: the jars that tools/NAME/pom.xml names, to the cache.
jars() {
  local to=$cache/$1 want
  want=$(stamp "tools/$1/pom.xml")
  current "$to" "$want" && return
  say "$2 to $to"
  rm -rf "$to"
  mvn -q -B -Dstyle.color=never -f "tools/$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$to" </dev/null
  echo "$want" >"$to/.stamp"
}

tools() {
  local want
  want=$(stamp tools/go.mod tools/go.sum)
  current "$bin" "$want" && return
  say "golangci-lint, govulncheck, benchstat to $bin (about two minutes)"
  (cd tools && GOBIN=$bin go install tool)
  echo "$want" >"$bin/.stamp"
}

# The vulnerability database is a Go module too; its reports become the index that govulncheck reads.
vulndb() {
  local to=$cache/vulndb want dir
  want=$(stamp tools/vulndb/go.mod)
  current "$to" "$want" && return
  say "the vulnerability database to $to"
  rm -rf "$to"
  (
    cd tools/vulndb
    go mod download golang.org/x/vulndb
    dir=$(go list -m -f '{{.Dir}}' golang.org/x/vulndb)
    go run golang.org/x/vulndb/cmd/indexdb -vulns "$dir/data/osv" -out "$to"
  )
  echo "$want" >"$to/.stamp"
}

packages
jars jms6 "the Jakarta JMS client"
jars activemq6 "ActiveMQ 6.3"
jars joram "the JMS conformance tests"
tools
vulndb
cd "$root"
say "ready"
