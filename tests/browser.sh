#!/usr/bin/env bash
# Prints the path of a Chromium for tests of the page, which it installs if it may: as root, where apt-get has one. Exit status 69 without.
set -euo pipefail
for name in "${HEADGATE_CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
  [[ -z $name ]] || ! path=$(command -v "$name") || { echo "$path"; exit 0; }
done
missing() { echo "no Chromium: $1; install Debian's package chromium, or name one in HEADGATE_CHROMIUM" >&2; exit 69; }
command -v apt-get >/dev/null || missing "there is no apt-get to install it with"
[[ $(id -u) = 0 ]] || missing "only root may install it"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
{ apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium fonts-liberation; } >"$log" 2>&1 </dev/null ||
  missing "apt-get could not install it: $(tail -n 1 "$log")"
command -v chromium || missing "apt-get installed none"
