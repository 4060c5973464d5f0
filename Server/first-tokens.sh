#!/bin/sh
# Makes the tokens of docker-compose.yml at its first start, so that its server is never open.
#
#   first-tokens           makes those that are missing, and prints where they lie
#   first-tokens show      prints the admin's token
#
# Each token lies in a file of mode 0600, in a volume of its own: the simulated devices get theirs
# alone.
set -eu

admin=${FERRY_ADMIN_FILE:-/var/lib/ferry-access/admin.token}
device=${FERRY_DEVICE_FILE:-/var/lib/ferry-device/device.token}
space=${FERRY_SPACE:-simulation}

# make FILE NAME OPTIONS…: a token under this name, unless the file and the token are there. The
# file appears under its name only when the server knows what it holds.
make() {
  file=$1
  name=$2
  shift 2
  if [ -s "$file" ] && printf '%s' "$known" | grep -qF "\"name\":\"$name\""; then return; fi
  rm -f "$file.new"
  ferryd token create --name "$name" --out "$file.new" --json "$@" >/dev/null
  mv "$file.new" "$file"
}

case ${1:-make} in
  show) cat "$admin" ;;
  make)
    umask 077
    ferryd migrate
    known=$(ferryd token list --json | tr -d ' \n')
    make "$admin" compose-admin --all-spaces --role admin
    make "$device" "compose-device-$space" --space "$space" --role writer
    echo "first-tokens: the admin's token is in $admin (volume access)"
    echo "first-tokens: print it with: docker compose run --rm --no-deps access show"
    ;;
  *)
    echo "usage: first-tokens [show]" >&2
    exit 2
    ;;
esac
