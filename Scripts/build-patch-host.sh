#!/usr/bin/env bash
# Builds ferry-patch, which runs patches in JavaScriptCore: Scripts/build-patch-host.sh OUTPUT
# It is C, so that a call starts in milliseconds, and so that nothing else of Ferry needs the engine.
set -euo pipefail
case $1 in /*) output=$1 ;; *) output=$PWD/$1 ;; esac
cd "$(dirname "$0")/../Client/PatchHost"
sources=(confine.c host.c)
flags=(-std=gnu11 -O2 -Wall -Wextra -Werror -fstack-protector-strong)
mkdir -p "$(dirname "$output")"
draft=$output.new
trap 'rm -f "$draft"' EXIT
if [ "$(uname)" = Darwin ]; then
  cc "${flags[@]}" "${sources[@]}" -framework JavaScriptCore -o "$draft"
else
  compiler=
  for name in cc clang gcc; do
    if command -v "$name" >/dev/null; then compiler=$name; break; fi
  done
  engine=
  for name in javascriptcoregtk-4.1 javascriptcoregtk-6.0; do
    if pkg-config --exists "$name"; then engine=$name; break; fi
  done
  [ -n "$compiler" ] && [ -n "$engine" ] || {
    echo "ferry: ferry-patch cannot be built" >&2
    echo "  why: a C compiler or the headers of JavaScriptCore are missing" >&2
    echo "  next: run Scripts/install-dependencies.sh patches" >&2
    exit 1
  }
  read -ra engine_flags <<< "$(pkg-config --cflags --libs "$engine")"
  "$compiler" "${flags[@]}" -fPIE -pie -Wl,-z,relro,-z,now "${sources[@]}" "${engine_flags[@]}" \
    -lpthread -o "$draft"
fi
mv -f "$draft" "$output"
