#!/bin/sh
# Installs packages of this repository into an empty environment: what the image files run, and what
# tests/e2e/test_images.py tries. Dependencies are those of uv.lock, with their hashes.
#   install.sh DESTINATION PACKAGE [OTHER PACKAGE OF THIS REPOSITORY THAT IT NEEDS ...]
set -eu
destination=$1
package=$2
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
uv export --quiet --frozen --no-dev --no-emit-workspace --package "$package" --output-file "$work/requirements.txt"
uv venv --quiet "$destination"
uv pip install --quiet --python "$destination/bin/python" --require-hashes --requirement "$work/requirements.txt"
for name in "$@"; do
    uv build --quiet --wheel --package "$name" --out-dir "$work/wheels"
done
uv pip install --quiet --python "$destination/bin/python" --no-deps "$work"/wheels/*.whl
