#!/usr/bin/env bash
# Compiles the package Tests/Outside against the modules that are built already, and runs it with a
# server: run-outside.sh BUILD, such as .build/debug. `swift build --package-path Tests/Outside` builds
# the same package, and Ferry once more.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "$1")
folder=$(mktemp -d)
server=
finish() {
  if [[ -n $server ]]; then kill "$server" 2>/dev/null && wait "$server" || true; fi
  rm -rf "$folder"
}
trap finish EXIT

maps=() libraries=()
for map in Sources/C*/module.modulemap; do
  maps+=(-Xcc "-fmodule-map-file=$map")
done
for name in sqlite3 libcurl libzstd zlib libcrypto; do
  read -ra flags <<<"$(pkg-config --libs "$name")"
  libraries+=("${flags[@]}")
done
# Of the archive, the linker takes the modules that are imported.
ar rcsT "$folder/ferry.a" "$build"/Ferry*.build/*.o
# Without `-package-name`: declarations of the package are out of reach, as for any user.
swiftc -swift-version 6 -warnings-as-errors -parse-as-library -module-name Outside \
  -I "$build/Modules" "${maps[@]}" Tests/Outside/Sources/Outside/*.swift "$folder/ferry.a" \
  "${libraries[@]}" -o "$folder/outside"

"$build/ferryd" serve --data "$folder/data" --listen 127.0.0.1:0 >"$folder/log" 2>&1 &
server=$!
for _ in $(seq 300); do
  address=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$folder/log" | head -1 || true)
  [[ -n $address ]] && break
  kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
  sleep 0.1
done
[[ -n $address ]] || { echo "ferryd does not start: $(cat "$folder/log")" >&2; exit 1; }
mkdir "$folder/guide"
seq 100000 >"$folder/guide/numbers.txt"
"$build/ferryd" space create outside --data "$folder/data"
"$build/ferryd" mission publish "$folder/guide" --space outside --data "$folder/data"
"$folder/outside" "$address" outside "$folder" "$folder/guide/numbers.txt"
