#!/usr/bin/env bash
# Installs what Ferry is built and run with on Debian and Ubuntu, where it is not there yet.
#   Scripts/install-dependencies.sh [build] [demo] [test]
# Quiet when there is nothing to do. Needs root, or sudo, only for what is missing.
set -euo pipefail

# The report page is tested in a real browser; the smallest one, unless there is one already.
browser() {
  local name
  for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then return; fi
  done
  echo chromium-headless-shell
}

packages=()
for purpose in "${@:-build}"; do
  case $purpose in
    build)
      packages+=(pkg-config libsqlite3-dev libpq-dev libcurl4-openssl-dev libmicrohttpd-dev
        libzstd-dev zlib1g-dev libssl-dev) ;;
    demo) packages+=(iso-codes) ;;
    test)
      packages+=(postgresql iso-codes openssl nginx haproxy util-linux aria2 python3-jwt
        python3-cryptography)
      # Word by word: it may be none.
      packages+=($(browser)) ;;
    *) echo "unknown purpose: $purpose (build, demo, test)" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed \
    || missing+=("$package")
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
  echo "Installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

command -v swift >/dev/null || {
  echo "ferry: swift is not installed (or not on the PATH)" >&2
  echo "  why: Ferry is built with Swift 6.2 or later" >&2
  echo "  next: install it from https://www.swift.org/install/linux/" >&2
  exit 1
}
