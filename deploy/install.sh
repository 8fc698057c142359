#!/usr/bin/env bash
# Installs headgate's wheel in a virtual environment, with the versions of requirements.lock, hashes checked, and the jars of
# Delta, Kafka and S3 beside its conf. Needs Python 3.11, Java 17 and a network:  deploy/install.sh TARGET
set -euo pipefail
target=$1
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
[ -e "$root/pyproject.toml" ] || root=$(dirname "$root")
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$target"
pip() { "$target/bin/python" -m pip "$@" --quiet --no-input --disable-pip-version-check; }

# setuptools first: it builds pyspark, which comes as source.
sed -n '/^setuptools==/,/^ *# via/p' "$root/requirements.lock" >"$work/setuptools.txt"
pip install --require-hashes --requirement "$work/setuptools.txt"
mkdir "$work/source"
cp -R "$root"/{lib,jobs,conf,scripts,pyproject.toml,README.md,LICENSE} "$work/source"
pip wheel --no-deps --no-build-isolation --wheel-dir "$work" "$work/source"
sed 's/ *\\$//; /^ /d' "$root/requirements.lock" >"$work/versions.txt"
pip install --no-build-isolation --constraint "$work/versions.txt" --report "$work/report.json" "$work"/headgate-*.whl
"$target/bin/python" - "$work/report.json" "$root/requirements.lock" <<'END'
import json, pathlib, sys
report, lock = (pathlib.Path(name).read_text() for name in sys.argv[1:])
for one in json.loads(report)["install"]:
    found = one["download_info"]
    if found["url"].startswith("file:"):  # headgate's own
        continue
    archive = found["archive_info"]  # older pips have "hash" alone, which is deprecated
    digest = archive.get("hashes", {}).get("sha256") or archive["hash"].removeprefix("sha256=")
    if digest not in lock:
        sys.exit(f"{one['metadata']['name']}: sha256 {digest} is not in requirements.lock")
END

# The jars are resolved by the pyspark that was installed, as in a checkout.
mkdir "$work/checkout"
cp -R "$root"/{scripts,conf} "$work/checkout"
ln -s "$target" "$work/checkout/.venv"
mkdir -p "$target/share/headgate/jars"
for jars in delta kafka s3; do
  folder=$("$target/bin/python" "$work/checkout/scripts/jars.py" "$jars")
  cp "$folder"/*.jar "$target/share/headgate/jars"
done
