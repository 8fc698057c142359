# Prometheus and its promtool, for tests; scripts source this. They set `root`; this defines fetch, which sets `prometheus` and `promtool`.
# shellcheck shell=bash

# Those on the PATH, else those of Debian's or Ubuntu's package, which is unpacked into .cache without being installed.
fetch() {
  prometheus=$(command -v prometheus) && promtool=$(command -v promtool) && return
  local dist=$root/.cache/prometheus
  prometheus=$dist/usr/bin/prometheus promtool=$dist/usr/bin/promtool
  [[ ! -x $promtool ]] || return 0
  local tool part=$root/.cache/prometheus.$$
  for tool in apt-get dpkg-deb; do
    command -v $tool >/dev/null ||
      { echo "no prometheus and promtool on the PATH, and no $tool, which the package is fetched with: install Prometheus" >&2; exit 69; }
  done
  mkdir -p "$part/lists/partial"
  # Package lists of its own if the system has none: to update those of the system takes root.
  local own=(-o "Dir::State::lists=$part/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
  (
    cd "$part"
    apt-get -q download prometheus || { apt-get -q "${own[@]}" update && apt-get -q "${own[@]}" download prometheus; }
  ) >"$part/log" 2>&1 || { echo "could not fetch the package prometheus:" >&2; tail -n 5 "$part/log" >&2; rm -rf "$part"; exit 69; }
  dpkg-deb -x "$part"/prometheus_*.deb "$part/unpacked"
  # Unpacked beside its place and renamed: it is whole or not there. Another start may have been faster.
  [[ -d $dist ]] || mv "$part/unpacked" "$dist"
  rm -rf "$part"
}
