#!/usr/bin/env bash
# Plans builds of the package Tests/Outside, which depends on Ferry, as its developers build it: without
# Ferry's own settings. Nothing is compiled.
#  - Ferry's modules do not treat warnings as errors: a developer's compiler may be newer.
#  - Each plan equals the one before. Otherwise a change of one line of the app would compile Ferry again.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Prints the arguments of each compilation.
plan() {
  env -u FERRY_OPTIMISED -u SWIFT_DETERMINISTIC_HASHING \
    swift build --package-path Tests/Outside --scratch-path "$folder/build" \
    --print-manifest-job-graph >/dev/null
  grep -e '"-module-name"' "$folder/build/debug.yaml"
}

plan >"$folder/first"
strict=$(grep -e '"-warnings-as-errors"' "$folder/first" \
  | sed -E 's/.*"-module-name","([A-Za-z_]+)".*/\1/' | grep -v '^Outside$' | sort -u || true)
if [[ -n $strict ]]; then
  echo "In a package that depends on Ferry, warnings are errors in:" $strict >&2
  exit 1
fi
grep -q '"-module-name","FerrySyncClient"' "$folder/first" || { echo "no plan of Ferry" >&2; exit 1; }
# The order of two names in a hashed set differs in half of the plans.
for _ in 2 3 4 5 6 7 8; do
  plan >"$folder/next"
  if ! cmp -s "$folder/first" "$folder/next"; then
    echo "The same package has two plans: SwiftPM would compile Ferry again." >&2
    diff <(tr ',' '\n' <"$folder/first") <(tr ',' '\n' <"$folder/next") | sed -n 1,20p >&2 || true
    exit 1
  fi
done
echo "A package that depends on Ferry compiles it once, and its warnings are no errors."
