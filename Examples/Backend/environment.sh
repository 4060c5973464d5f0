#!/bin/sh
# Makes a virtual environment with Django and psycopg from PyPI, and prints the path of its interpreter.
#
#   environment.sh [FOLDER]
#
# Exit code 75: PyPI cannot be reached now.
set -eu
folder=${1:-$(cd "$(dirname "$0")/../.." && pwd)/.build/backend-python}
python=$folder/bin/python3
if ! "$python" -c "import django, psycopg" 2>/dev/null; then
  rm -rf "$folder"
  /usr/bin/python3 -m venv "$folder" >&2 || {
    echo "environment.sh: no virtual environment can be made: run \`apt-get install python3-venv\` first" >&2
    exit 1
  }
  if ! "$python" -m pip install --quiet --disable-pip-version-check "Django==5.2.*" "psycopg[binary]==3.2.*" >&2
  then
    rm -rf "$folder"
    echo "environment.sh: Django cannot be installed from PyPI: connect this machine, or do without migrations" >&2
    exit 75
  fi
fi
echo "$python"
