#!/usr/bin/env bash
# Runs a job under Spark; sets this folder up first if it is not. ./spark-submit.sh --help
set -euo pipefail
scripts=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/scripts" && pwd)
. "$scripts/find-python.sh"
export HEADGATE_COMMAND="$(dirname "$0")/headgate"
case ${1:-} in
  -h | --help) exec "$python" "$scripts/submit.py" --help ;;
esac
exec "$python" "$scripts/bootstrap.py" "$scripts/submit.py" "$@"
