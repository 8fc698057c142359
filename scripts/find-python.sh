# Sourced by the start scripts: sets `python` to a Python 3.11 or 3.12 that can make a virtual environment, or ends with what to install.
# shellcheck shell=bash

_asked='import sys, venv, ensurepip; raise SystemExit(not (3, 11) <= sys.version_info[:2] <= (3, 12))'
python=
for _candidate in python3.11 python3 python3.12; do
  # Running it, not only finding it: a version switcher's shim may exist for a version that is not there.
  if "$_candidate" -c "$_asked" >/dev/null 2>&1; then python=$_candidate; break; fi
done
if [[ -z $python ]]; then
  cat >&2 <<'END'
headgate: needs Python 3.11 (3.12 works too) with its venv module; looked for python3.11, python3 and python3.12 on the PATH.
  Debian, Ubuntu: apt install python3.11 python3.11-venv      macOS: brew install python@3.11
END
  exit 69
fi
