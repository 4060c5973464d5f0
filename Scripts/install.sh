#!/usr/bin/env bash
# Installs ferry and ferryd with their shell completion, and the library that other programs load into
# SQLite; or removes them.
#   Scripts/install.sh install|uninstall PROGRAMS PREFIX [DESTDIR]
# PROGRAMS is the folder with the built programs. DESTDIR is put before every path, for packages.
set -euo pipefail

if [ $# -lt 3 ] || [ $# -gt 4 ]; then
  echo "usage: Scripts/install.sh install|uninstall PROGRAMS PREFIX [DESTDIR]" >&2
  exit 2
fi
action=$1 programs=$2 prefix=${3%/} destination=${4:-}
destination=${destination%/}
names=(ferry ferryd)
library=libferry_sqlite.so
if [ "$(uname)" = Darwin ]; then library=libferry_sqlite.dylib; fi

case $prefix in
  /*) ;;
  # An empty prefix is the root itself.
  "") [ "$3" = / ] || { echo "ferry: PREFIX is empty; give one, such as /usr/local" >&2; exit 2; } ;;
  *)
    echo "ferry: PREFIX has to be an absolute path: $prefix" >&2
    echo "  next: give one, such as /usr/local" >&2
    exit 2 ;;
esac

bin=$destination$prefix/bin
lib=$destination$prefix/lib
bash=$destination$prefix/share/bash-completion/completions
zsh=$destination$prefix/share/zsh/site-functions
fish=$destination$prefix/share/fish/vendor_completions.d

# Replaces a file in one step: a running program keeps its own file.
put() {
  local mode=$1 source=$2 target=$3
  install -m "$mode" "$source" "$target.new"
  mv -f "$target.new" "$target"
}

# All completion scripts are written before the first file is installed.
install_all() {
  local name
  for name in "${names[@]}" "$library"; do
    [ -x "$programs/$name" ] || {
      echo "ferry: $programs/$name does not exist" >&2
      echo "  next: build the programs first: make build" >&2
      exit 1
    }
  done
  scratch=$(mktemp -d)
  trap "rm -rf '$scratch'" EXIT
  for name in "${names[@]}"; do
    "$programs/$name" completion bash > "$scratch/$name.bash"
    "$programs/$name" completion zsh > "$scratch/$name.zsh"
    "$programs/$name" completion fish > "$scratch/$name.fish"
  done
  install -d "$bin" "$lib" "$bash" "$zsh" "$fish" || {
    echo "ferry: $destination$prefix cannot be written" >&2
    echo "  next: as root, run make install again, or give another PREFIX" >&2
    exit 1
  }
  for name in "${names[@]}"; do
    put 755 "$programs/$name" "$bin/$name"
    put 644 "$scratch/$name.bash" "$bash/$name"
    put 644 "$scratch/$name.zsh" "$zsh/_$name"
    put 644 "$scratch/$name.fish" "$fish/$name.fish"
  done
  put 755 "$programs/$library" "$lib/$library"
  # Only if `make patches` built it.
  if [ -n "${PATCH_HOST:-}" ]; then put 755 "$PATCH_HOST" "$bin/ferry-patch"; fi
  echo "ferry and ferryd are in $bin, $library is in $lib"
}

# Folders stay: other programs use them.
uninstall_all() {
  local name
  for name in "${names[@]}"; do
    rm -f "$bin/$name" "$bash/$name" "$zsh/_$name" "$fish/$name.fish"
  done
  rm -f "$lib/$library" "$bin/ferry-patch"
  echo "ferry and ferryd are removed from $bin, $library from $lib"
}

case $action in
  install) install_all ;;
  uninstall) uninstall_all ;;
  *) echo "ferry: unknown action: $action (install, uninstall)" >&2; exit 2 ;;
esac
