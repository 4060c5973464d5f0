#!/usr/bin/env bash
# A board as a published web app, in a headless browser: version 1, a film, another device's change,
# version 2, a conflict, and a broken version 3, whose failure the server counts.
#   Scripts/hybrid.sh DIRECTORY-OF-PROGRAMS [DIRECTORY-FOR-PICTURES]
set -euo pipefail
cd "$(dirname "$0")/.."

programs=$(realpath "$1")
pictures=$(realpath -m "${2:-.hybrid}")
ferry=$programs/ferry
ferryd=$programs/ferryd
board=Examples/Board
work=$(mktemp -d "${TMPDIR:-/tmp}/ferry-hybrid.XXXXXX")
children=()

finish() {
  local child
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

say() { printf '\n%s\n' "$*"; }
fail() {
  echo "hybrid: $1" >&2
  cat "$work"/*.log >&2
  exit 1
}

# Waits until a file has a line with a text.
await() {
  local try
  for ((try = 0; try < 1200; try++)); do
    if grep -qs -- "$2" "$work/$1"; then return; fi
    sleep 0.05
  done
  fail "$1 has no “$2”"
}

serve() {
  : > "$work/server.log"
  "$ferryd" serve --listen "127.0.0.1:$port" --data "$work/data" > "$work/server.log" 2>&1 &
  server=$!
  children+=("$server")
  await server.log "listening on"
}

# Publishes the folder as a version of the bundle.
publish() {
  local version=$1
  sed -i "s/\"version\": \"[0-9]*\"/\"version\": \"$version\"/" "$work/board/ferry-bundle.json"
  "$ferryd" bundle publish "$work/board" --space board --server "http://127.0.0.1:$port" ||
    fail "version $version was not published"
}

# Waits until the laptop, which syncs continuously, has the files of a version.
await_version() {
  local try
  for ((try = 0; try < 6000; try++)); do
    if "${laptop[@]}" bundle list --json | grep "\"version\":\"$1\"" | grep '"here":true' >/dev/null; then return; fi
    sleep 0.1
  done
  fail "version $1 did not reach the laptop"
}

# Below the range from which the kernel takes the ports of outgoing connections.
port=$(python3 -c '
import random, socket
while True:
  port = random.randrange(20000, 32000)
  try: socket.socket().bind(("127.0.0.1", port))
  except OSError: continue
  print(port)
  break')
mkdir -p "$pictures"
: > "$work/shell.log"
: > "$work/page.log"

say "1. A server with a film, and two devices"
serve
laptop=("$ferry" -r "$work/laptop.db")
tablet=("$ferry" -r "$work/tablet.db")
for device in laptop tablet; do
  "$ferry" -r "$work/$device.db" init --server "http://127.0.0.1:$port" --space board
  "$ferry" -r "$work/$device.db" name "Ada's $device"
  "$ferry" -r "$work/$device.db" sql \
    "CREATE TABLE cards(id TEXT PRIMARY KEY, title TEXT, lane TEXT, position REAL)"
  "$ferry" -r "$work/$device.db" track cards
done
"$ferryd" mission publish "$board/film" --id board-film --space board --data "$work/data" ||
  fail "the film was not published"
"${laptop[@]}" sql "INSERT INTO cards VALUES
  ('c1', 'Buy a film projector', 'todo', 1), ('c2', 'Invite the neighbours', 'doing', 2)"
"${laptop[@]}" sync
# A device's name travels with its first push. The board names the tablet in a conflict later.
"${tablet[@]}" sql "INSERT INTO cards VALUES ('c3', 'Find a wall', 'done', 3)"
"${tablet[@]}" sync
"${laptop[@]}" sync

say "2. Version 1 of the board is published, and opens on the laptop"
cp -r "$board/app" "$work/board"
publish 1
"${laptop[@]}" bundle fetch board
"${laptop[@]}" shell board --grant data --grant missions --sync --no-open --json \
  > "$work/shell.log" 2> "$work/shell-error.log" &
children+=($!)
await shell.log '"event":"started"'
address=$(sed -n 's/.*"address":"\([^"]*\)".*/\1/p' "$work/shell.log")

title() { echo "return document.querySelectorAll('.card').length && document.querySelector('h1').textContent === '$1' && document.documentElement.dataset.seen !== '$2' || null"; }
edit="const field = document.querySelector('[data-id=c2] input'); field.value = 'Invite all neighbours';
  field.dispatchEvent(new Event('change')); return 'edited'"
steps=(
  "$(title Board '')"                                                           # 0
  "@size 1000 800"
  "@picture $pictures/1-version-1.png"
  "document.querySelector('#film button').click(); return 'asked'"
  "const film = document.querySelector('video'); if (film.hidden || film.readyState < 2) return null;
    await film.play(); return film.currentTime > 0.5 ? film.videoWidth : null"  # 4
  "@picture $pictures/2-film.png"
  "document.documentElement.dataset.open = 'first'; return 'open'"              # 6
  "const field = document.querySelector('[data-id=c3] input');
    return document.documentElement.dataset.open === 'first' && field?.value === 'Find a white wall'
      ? field.value : null"                                                     # 7
  "@wait $work/two"
  "document.documentElement.dataset.seen = 'one'; return document.querySelector('h1').textContent"  # 9
  "@reload"
  "$(title 'Board 2' one)"                                                      # 11
  "@picture $pictures/3-version-2.png"
  "@wait $work/offline"
  "$edit"                                                                       # 14
  "return document.getElementById('status').textContent.includes('1 to send') || null"
  "@picture $pictures/4-offline.png"
  "@wait $work/online"
  "const line = document.querySelector('.choice p')?.textContent;
    return line?.includes('tablet') ? line : null"  # 18
  "@picture $pictures/5-conflict.png"
  "document.querySelector('.choice .primary').click(); return 'mine'"
  "const title = document.querySelector('[data-id=c2] input').value;
    return document.getElementById('conflicts').hidden && title === 'Invite all neighbours'
      ? title : null"                                                           # 21
  "@picture $pictures/6-resolved.png"
  "@wait $work/three"
  "document.documentElement.dataset.seen = 'two'; return 'left'"                # 24
  "@reload"
  "$(title 'Board 2' two)"                                                      # 26
  "@picture $pictures/7-fallback.png"
  "@size 390 844"
  "@dark"
  "@picture $pictures/8-phone-dark.png"
)
Scripts/browse.py --time 600 "$address" "${steps[@]}" > "$work/page.log" 2> "$work/browser.log" &
page=$!
children+=("$page")

# Waits for the result of a step, counted from 0.
result() {
  local try
  for ((try = 0; try < 12000; try++)); do
    if [ "$(wc -l < "$work/page.log")" -gt "$1" ]; then
      sed -n "$(($1 + 1))p" "$work/page.log"
      return
    fi
    kill -0 "$page" 2>/dev/null || fail "the page has no result of step $1"
    sleep 0.05
  done
  fail "the page has no result of step $1"
}

result 0 > /dev/null
echo "the page shows the cards, and has confirmed version 1"
echo "the film of the mission plays from the device, $(result 4) pixels wide"

say "3. The tablet changes a card while the page is open"
result 6 > /dev/null
"${tablet[@]}" sql "UPDATE cards SET title = 'Find a white wall' WHERE id = 'c3'"
"${tablet[@]}" sync
echo "the open page shows the tablet's title without another load: $(result 7)"

say "4. Version 2 is published while the page is open"
sed -i 's|<h1>Board</h1>|<h1>Board 2</h1>|; s|</body>|<script type="module" src="summary.js"></script></body>|' \
  "$work/board/index.html"
cat > "$work/board/summary.js" <<'SCRIPT'
for await (const count of ferry.watch("data.count", { table: "cards", where: ["<>", "lane", "done"] })) {
  document.title = `${count} open cards`;
}
SCRIPT
sed -i 's|{"name": "data.query"}|{"name": "data.query"}, {"name": "data.count"}|' \
  "$work/board/ferry-bundle.json"
publish 2
await_version 2
touch "$work/two"
echo "the open page still shows $(result 9)"
result 11 > /dev/null
echo "the next page load shows \"Board 2\""

say "5. Both devices change a card without a network"
kill "$server"
wait "$server" 2>/dev/null || true
touch "$work/offline"
result 15 > /dev/null
"${tablet[@]}" sql "UPDATE cards SET title = 'Invite the whole street' WHERE id = 'c2'"
serve
"${tablet[@]}" sync
touch "$work/online"
echo "the board asks: $(result 18)"
echo "the user keeps the own title: $(result 21)"

say "6. Version 3 is published, and its script is broken"
echo 'throw new Error("version 3 is broken")' > "$work/board/board.js"
publish 3
await_version 3
touch "$work/three"
result 26 > /dev/null
echo "the page falls back to \"Board 2\""
wait "$page" || fail "the browser failed"

say "7. The server counts the devices of each version"
grep -q '"event":"failed","version":"3"' "$work/shell.log" || fail "version 3 did not fail"
"${laptop[@]}" sync > /dev/null
"$ferryd" bundle show board --space board --data "$work/data"
failures=$("$ferryd" bundle show board --space board --data "$work/data" --json |
  python3 -c 'import json, sys; print([(v["version"], v["successes"], v["failures"]) for v in json.load(sys.stdin)["versions"]])')
[ "$failures" = "[('3', 0, 1), ('2', 1, 0), ('1', 1, 0)]" ] || fail "the server counts $failures"
echo "the server counts 1 failure of version 3"
say "Pictures are in $pictures"
