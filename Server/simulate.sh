#!/bin/sh
# The simulation of docker-compose.yml: devices that edit the same data through the same server,
# often offline, and a referee that says whether all of them ended with all of it.
#
#   simulate device     one device: a new replica, rounds of edits, and at the end a dump
#   simulate referee    compares the dumps of FERRY_DEVICES devices; its exit code is the verdict
#
# They meet in a folder that they share (a volume). What an earlier run left there, or in the
# space, does no harm: each process has a new name and each run marks its own rows.

# shellcheck disable=SC2317 # await calls functions by name
set -eu

shared=${FERRY_SHARED:-/var/lib/ferry-simulation}
devices=${FERRY_DEVICES:-4}
rounds=${FERRY_ROUNDS:-10}
deadline=$(($(date +%s) + ${FERRY_TIMEOUT:-300}))
name=$(cut -c 1-8 /proc/sys/kernel/random/uuid)

# In each round a device inserts this many notes, and edits and deletes some of the round before.
inserted=20
edited=5
deleted=3
cards=50

trap 'echo "$name: stopped" >&2; exit 143' TERM INT

say() { echo "$name: $*"; }

fail() {
  echo "$name: $*" >&2
  exit 1
}

# await WHAT COMMAND…: repeats the command until it succeeds.
await() {
  what=$1
  shift
  until "$@"; do
    [ "$(date +%s)" -lt "$deadline" ] || fail "gave up waiting for $what"
    sleep 0.2
  done
}

# Files appear whole under their name.
publish() {
  cat >"$shared/.$name.new"
  mv "$shared/.$name.new" "$shared/$1"
}

files() { find "$shared" -maxdepth 1 -name "$1"; }

count() { files "$1" | wc -l; }

# ---- device ----------------------------------------------------------------------------------

# Done, or offline: what is not a reason to stop. Conflicts and quarantine (4) are one here.
attempt() {
  code=0
  "$@" || code=$?
  case $code in
    0) return 0 ;;
    3) return 1 ;;
    *) fail "'$1 $2' ended with $code" ;;
  esac
}

# The token of the environment, or of a file, which may appear later than this process.
token() {
  if [ -n "${FERRY_TOKEN:-}" ]; then
    echo "$FERRY_TOKEN"
  elif [ -n "${FERRY_TOKEN_FILE:-}" ]; then
    cat "$FERRY_TOKEN_FILE" 2>/dev/null || true
  fi
}

init() {
  # ferry reads the token from the same variables: on its command line, `ps` would show it.
  secret=$(token)
  [ -n "$secret" ] || [ -z "${FERRY_TOKEN_FILE:-}" ] || return 1
  attempt ferry init --server "$FERRY_SERVER" --space "$FERRY_SPACE"
}

exchange() { attempt ferry sync --json; }

sql() { ferry sql --json "$1" >/dev/null; }

status() { ferry status --json | tr -d ' \n' | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"; }

# Asks for a place until the referee, who may start later, has put this device on its list.
join() {
  : >"$shared/$name.hello"
  [ -f "$shared/run" ] && grep -q "^$name$" "$shared/run"
}

# A round is two transactions: one on notes of its own, one on cards that all devices edit.
edit() {
  before=$(($1 - 1))
  sql "
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $inserted)
    INSERT INTO notes (id, run, author, round, number, body, edits)
      SELECT '$run-$name-$1-' || i, '$run', '$name', $1, i, hex(randomblob(40)), 0 FROM n;
    UPDATE notes SET body = 'edited in round $1', edits = edits + 1
      WHERE run = '$run' AND author = '$name' AND round = $before AND number <= $edited;
    DELETE FROM notes WHERE run = '$run' AND author = '$name' AND round = $before
      AND number > $inserted - $deleted;"
  sql "
    UPDATE cards SET title = '$name, round $1', votes = votes + 1
      WHERE id IN (SELECT id FROM cards ORDER BY random() LIMIT 5);"
}

dump() {
  ferry sql --json 'SELECT * FROM notes ORDER BY id'
  ferry sql --json 'SELECT * FROM cards ORDER BY id'
}

device() {
  rm -f "$FERRY_REPLICA" "$FERRY_REPLICA-wal" "$FERRY_REPLICA-shm"
  await "the server" init
  sql "
    CREATE TABLE notes (id TEXT PRIMARY KEY, run TEXT NOT NULL, author TEXT NOT NULL,
      round INTEGER NOT NULL, number INTEGER NOT NULL, body TEXT, edits INTEGER NOT NULL);
    CREATE TABLE cards (id TEXT PRIMARY KEY, title TEXT, votes INTEGER NOT NULL);"
  ferry track notes cards >/dev/null
  await "the first sync" exchange
  sql "
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $cards)
    INSERT OR IGNORE INTO cards (id, title, votes) SELECT 'card-' || i, 'new', 0 FROM n;"

  await "a place in the run" join
  run=$(head -n 1 "$shared/run")
  place=$(grep -n "^$name$" "$shared/run" | cut -d : -f 1)
  round=0
  while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    edit "$round"
    # Two rounds of three end offline, in another order on each device.
    [ $(((round + place) % 3)) -ne 0 ] || exchange || say "offline in round $round"
    sleep "${FERRY_PAUSE:-0.3}"
  done
  say "made $rounds rounds of edits, $(status pending) operations still to send"

  await "the last push" exchange
  : | publish "$name.sent"
  all_sent() { [ "$(count '*.sent')" -ge "$devices" ]; }
  await "the other devices' edits" all_sent
  await "the last pull" exchange
  [ "$(status pending)" = 0 ] || fail "operations are still pending after the last sync"
  [ "$(status quarantined)" = 0 ] || fail "operations were quarantined"
  dump | publish "$name.dump"

  await "the verdict" test -f "$shared/verdict"
  # The referee leaves first: compose stops everything when the first one does.
  sleep 1
  exit "$(cat "$shared/verdict")"
}

# ---- referee ---------------------------------------------------------------------------------

# check WHAT EXPECTED PATTERN FILE: lines of a dump that match, against what must be there.
check() {
  found=$(grep -c "$3" "$4" || true)
  [ "$found" -eq "$2" ] || {
    say "$(basename "$4" .dump) has $found $1 where $2 are expected"
    verdict=1
  }
}

compare() {
  mine="\"run\" *: *\"$run\""
  reference=$(files '*.dump' | sort | head -n 1)
  for dump in $(files '*.dump' | sort); do
    digest=$(sha256sum "$dump" | cut -d ' ' -f 1)
    say "device $(basename "$dump" .dump): $(wc -l <"$dump") rows, sha256 $digest"
    check "notes" $((devices * (rounds * inserted - (rounds - 1) * deleted))) "$mine" "$dump"
    check "edited notes" $((devices * (rounds - 1) * edited)) \
      "$mine.*\"edits\" *: *1\|\"edits\" *: *1.*$mine" "$dump"
    check "cards" $cards '"id" *: *"card-' "$dump"
    cmp -s "$reference" "$dump" || {
      say "it differs from $(basename "$reference" .dump):"
      diff "$reference" "$dump" | head -n 20 || true
      verdict=1
    }
  done
}

referee() {
  verdict=0
  find "$shared" -mindepth 1 -delete
  run=$name
  all_here() { [ "$(count '*.hello')" -ge "$devices" ]; }
  all_dumped() { [ "$(count '*.dump')" -ge "$devices" ]; }
  await "$devices devices" all_here
  {
    echo "$run"
    files '*.hello' | sed 's,.*/,,; s,\.hello$,,' | sort | head -n "$devices"
  } | publish run
  say "$devices devices, $rounds rounds of edits on each"
  await "the devices' dumps" all_dumped
  compare
  if [ "$verdict" = 0 ]; then
    say "converged: all $devices devices hold the same data, and all of it"
  else
    say "NOT converged"
  fi
  echo "$verdict" | publish verdict
  exit "$verdict"
}

case ${1:-} in
  device) device ;;
  referee) referee ;;
  *)
    echo "usage: simulate device|referee" >&2
    exit 2
    ;;
esac
