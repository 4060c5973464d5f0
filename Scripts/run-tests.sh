#!/usr/bin/env bash
# Runs a part of the tests. When tests fail, their errors are printed once more at the end: thousands
# of lines may stand between an error and the end of the output.
#   Scripts/run-tests.sh swift test --skip-build --filter ProtocolTests
#
# The files of tests are in memory, if there is room: their databases otherwise wait for the disk.
# TMPDIR names another place.
# The user's own settings would change results. FERRY_TEST_… are settings of the tests.
# Sources/Proving/Laboratory/ChildEnvironment.swift does the same for the programs that tests start.
set -euo pipefail

for name in $(compgen -e); do
  case ${name,,} in
    ferry_test_* | ferry_optimised | ferry_area) ;;
    ferry_* | pg* | otel_* | aws_* | weed_* | lc_* | xdg_* | lang | language | tz | columns | lines | \
      no_color | curl_home | sqlite_tmpdir | http_proxy | https_proxy | ftp_proxy | all_proxy | \
      no_proxy) unset "$name" ;;
  esac
done
output=$(mktemp)
# ~/.pgpass would answer a server that asks for a password.
export LANG=C.UTF-8 TZ=UTC PGPASSFILE=$output.none
folder=
# A server that a test has left behind may still write below the folder.
trap 'rm -rf "$output" ${folder:+"$folder"} || true' EXIT
if [[ -z ${TMPDIR:-} && -w /dev/shm ]]; then
  free=$(df --output=avail -k /dev/shm | tail -n 1)
  if ((free > 8 << 20)); then
    folder=$(mktemp -d /dev/shm/ferry-tests.XXXXXX)
    chmod 755 "$folder"
    export TMPDIR=$folder
  fi
fi
status=0
"$@" 2>&1 | tee "$output" || status=$?
if ((status)); then
  echo "These tests failed:"
  # Marked lines are failures; lines with an arrow explain the one above.
  grep -E -A 3 '^✘|^error:|Fatal error|unexpected signal' "$output" | grep -E '^✘|↳|error' |
    cut -c 1-1000 | tail -n 20 || true
fi
exit "$status"
