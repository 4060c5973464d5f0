#!/usr/bin/env bash
# Builds the library's documentation from the compiled modules: build-docs.sh MODULES OUTPUT.
# Any warning of DocC fails, such as a link to a symbol that does not exist.
set -euo pipefail
modules=$(realpath "$1") output=$2
cd "$(dirname "$0")/.."
umbrella=Client/Ferry/Ferry.swift
# The umbrella's symbols are those of the modules that it exports again.
exported=$(sed -nE 's/^ *@_exported (public )?import //p' "$umbrella" | paste -sd, -)
[[ -n $exported ]] || { echo "$umbrella exports no module" >&2; exit 1; }
tools=$(dirname "$(readlink -f "$(command -v swift)")")
graphs=$(mktemp -d)
trap 'rm -rf "$graphs"' EXIT
maps=()
for map in Sources/C*/module.modulemap; do maps+=(-Xcc "-fmodule-map-file=$map"); done
target=$(swift -print-target-info | sed -n 's/^ *"unversionedTriple": "\(.*\)",$/\1/p')
"$tools/swift-symbolgraph-extract" -module-name Ferry -I "$modules" "${maps[@]}" \
  -target "$target" -minimum-access-level public -output-dir "$graphs" \
  "-experimental-allowed-reexported-modules=$exported"
# The conformances of types of other modules, such as Int, have no documentation of Ferry.
rm -f "$graphs"/Ferry@*.symbols.json
mkdir -p "$(dirname "$output")"
"$tools/docc" convert Client/Ferry/Ferry.docc --additional-symbol-graph-dir "$graphs" \
  --fallback-display-name Ferry --fallback-bundle-identifier org.ferry.library \
  --warnings-as-errors --output-dir "$output"
