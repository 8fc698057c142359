# Pulsar's server distribution, fetched once through Maven; scripts source this. They set `root`; this sets `version` and `dist`, and defines fetch.
# shellcheck shell=bash
version=4.0.8
cache=$root/.cache/pulsar
dist=$cache/apache-pulsar-$version

fetch() {
  [[ ! -x $dist/bin/pulsar ]] || return 0
  local tool part=$cache/part.$$
  for tool in mvn curl tar; do
    command -v $tool >/dev/null || { echo "no $tool on the PATH, which Pulsar's distribution is fetched with" >&2; exit 69; }
  done
  mkdir -p "$part"
  mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -DoutputDirectory="$part" \
    -Dartifact="org.apache.pulsar:pulsar-server-distribution:$version:tar.gz:bin" >"$part/log" 2>&1 ||
    { echo "could not fetch Pulsar $version:" >&2; head -n 5 "$part/log" >&2; rm -rf "$part"; exit 69; }
  tar -xzf "$part/pulsar-server-distribution-$version-bin.tar.gz" -C "$part"
  # Unpacked beside its place and renamed: it is whole or not there. Another start may have been faster.
  [[ -d $dist ]] || mv "$part/apache-pulsar-$version" "$dist"
  rm -rf "$part"
}
