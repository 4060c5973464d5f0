#!/usr/bin/env bash
# Ferry's main job, start to end, on real data: three devices, one server, a time without a
# network, conflicts, and three files that hold the same in the end; then a mission, whose download
# is killed half-way and goes on.
#   Scripts/demo.sh DIRECTORY-OF-THE-BUILT-PROGRAMS
# KEEP=1 keeps the files and prints their folder.
set -euo pipefail

bin=${1:?the directory of the built programs}
codes=/usr/share/iso-codes/json
work=$(mktemp -d)
server_pid=
started=$SECONDS

finish() {
  status=$?
  [ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null || true
  wait 2>/dev/null || true
  if [ -n "${KEEP:-}" ]; then echo "The files are in $work"; else rm -rf "$work"; fi
  if [ $status -ne 0 ]; then echo "The demo failed (exit $status)." >&2; fi
}
trap finish EXIT

say() { printf '\n== %s\n' "$*"; }

# Shows a command as a user would type it, then runs it.
on() {
  device=$1
  shift
  printf '%s$ ferry' "$device"
  for word in "$@"; do
    case $word in *[\ \'\(\*]*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  printf '\n'
  "$bin/ferry" --replica "$work/$device.db" "$@"
}

start_server() {
  : >"$work/server.log"
  "$bin/ferryd" serve --listen "127.0.0.1:${port:-0}" --data "$work/server" 2>>"$work/server.log" &
  server_pid=$!
  while true; do
    port=$(sed -n 's|.*listening on http://127.0.0.1:\([0-9]*\).*|\1|p' "$work/server.log")
    [ -z "$port" ] || break
    kill -0 "$server_pid" 2>/dev/null || { cat "$work/server.log" >&2; exit 1; }
    sleep 0.05
  done
  echo "ferryd serves on http://127.0.0.1:$port (embedded store, process $server_pid)"
}

stop_server() {
  kill -TERM "$server_pid"
  wait "$server_pid"
  server_pid=
}

# All rows of both tables, in one order, with every column named.
dump() {
  "$bin/ferry" --replica "$work/$1.db" sql --json \
    "SELECT alpha_3, name, scope, type, alpha_2, inverted_name, common_name, bibliographic
     FROM languages ORDER BY alpha_3"
  "$bin/ferry" --replica "$work/$1.db" sql --json \
    "SELECT code, name, type, parent FROM subdivisions ORDER BY code"
}

say "A server, with nothing configured"
start_server

say "Three devices join the space 'atlas'"
for device in laptop phone tablet; do
  on "$device" init --server "http://127.0.0.1:$port" --space atlas
done

say "The laptop imports Debian's languages and subdivisions, and sends them"
on laptop import languages "$codes/iso_639-3.json" --id alpha_3
on laptop import subdivisions "$codes/iso_3166-2.json" --id code
on laptop sync

say "The others receive them"
for device in phone tablet; do
  on "$device" sync
  on "$device" track languages --create --id alpha_3
  on "$device" track subdivisions --create --id code
done
on phone sql "SELECT count(*) AS languages FROM languages"

say "The server is stopped; all three go on working"
stop_server
on laptop sql "UPDATE languages SET name = 'Suomi (laptop)' WHERE alpha_3 = 'fin'"
sleep 0.01
on phone sql "UPDATE languages SET name = 'Suomi (phone)', common_name = 'Finnish' WHERE alpha_3 = 'fin'"
sleep 0.01
on tablet sql "UPDATE languages SET name = 'Suomi (tablet)' WHERE alpha_3 = 'fin'"
on laptop sql "UPDATE subdivisions SET type = 'Region (laptop)' WHERE code = 'FI-18'"
on phone sql "UPDATE subdivisions SET name = 'Uusimaa (phone)' WHERE code = 'FI-18'"
on tablet sql "DELETE FROM languages WHERE alpha_3 = 'epo'"
on phone sql "UPDATE languages SET name = 'Esperanto (phone)' WHERE alpha_3 = 'epo'"
on tablet sql "INSERT INTO languages(alpha_3, name, scope, type) VALUES ('qfy', 'Ferryish', 'I', 'C')"
echo
echo "Without the server a sync ends with exit code 3, and keeps everything:"
on phone sync || echo "(exit code $?)"
on phone pending

say "The server is back; all devices sync"
start_server
for round in 1 2; do
  for device in laptop phone tablet; do on "$device" sync; done
done

say "The results of the conflicts"
on laptop sql "SELECT alpha_3, name, common_name FROM languages WHERE alpha_3 IN ('fin', 'epo', 'qfy')"
on laptop sql "SELECT code, name, type FROM subdivisions WHERE code = 'FI-18'"
echo "'fin' has the latest name, and the phone's common name. FI-18 has both edits, because they"
echo "changed different columns. 'epo' is deleted. Ferry keeps the values that lost:"
for device in phone tablet; do on "$device" log --limit 4; done

say "All three files hold the same data"
digests=
for device in laptop phone tablet; do
  digest=$(dump "$device" | sha256sum | cut -c1-16)
  rows=$(dump "$device" | wc -l)
  pending=$("$bin/ferry" --replica "$work/$device.db" status --json |
    sed -n 's/.*"pending":\([0-9]*\).*/\1/p')
  printf '%-8s %s rows, %s pending, SHA-256 %s…\n' "$device" "$rows" "$pending" "$digest"
  digests="$digests$digest-$rows-$pending\n"
done
if [ "$(printf "%b" "$digests" | sort -u | wc -l)" != 1 ]; then
  echo "They differ. That is a bug." >&2
  exit 1
fi

say "A mission: a film and Debian's ISO tables, published for offline use"
mkdir -p "$work/tour/tables"
cp "$codes"/iso_*.json "$work/tour/tables"
head -c 50331648 /dev/urandom >"$work/tour/film.mp4"
printf 'server$ ferryd mission publish tour --space atlas\n'
"$bin/ferryd" mission publish "$work/tour" --title "A tour" --space atlas --data "$work/server"
on phone pull
on phone mission list
echo "The download is killed with SIGKILL half-way:"
printf 'phone$ ferry mission download tour --limit-rate 8MiB\n'
"$bin/ferry" --replica "$work/phone.db" mission download tour --limit-rate 8MiB &
download=$!
sleep 1.5
kill -KILL "$download" || true
wait "$download" 2>/dev/null || true
on phone mission list
echo "The download continues, and the mission appears when all files are verified:"
on phone mission download tour
folder=$("$bin/ferry" --replica "$work/phone.db" mission path tour)
if ! diff -r "$work/tour" "$folder"; then
  echo "The mission differs from the published files. That is a bug." >&2
  exit 1
fi
echo "The files in …${folder#"$work"} are those that were published."
stop_server
printf '\nDone in %s seconds. Next: README.md, `make serve`, `ferry --help`.\n' $((SECONDS - started))
