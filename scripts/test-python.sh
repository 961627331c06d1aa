#!/usr/bin/env bash
# Builds the Python package, installs it into a virtual environment and runs its tests. Triton and tinygrad are tested if pip
# can install them. The environment is kept in FOLDER, by default target/python.
#
# `cargo test -p wavesim-python` runs only the tests that need just NumPy and pytest, with the module that cargo has built.
#
# usage: test-python.sh [FOLDER]
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,7s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
folder=${1:-target/python}
if ! command -v python3 >/dev/null || ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    echo "skipped: python3 with venv is not installed"
    exit 0
fi
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
pip=("$folder/bin/python" -m pip --disable-pip-version-check --quiet)
if ! "${pip[@]}" install 'maturin>=1.7,<2' pytest numpy; then
    echo "skipped: pip cannot install maturin, pytest and numpy"
    exit 0
fi
rm -rf "$folder/wheels"
"$folder/bin/maturin" build --quiet --release --manifest-path hosts/python/Cargo.toml \
    --interpreter "$folder/bin/python" --out "$folder/wheels"
"${pip[@]}" install --force-reinstall --no-deps "$folder"/wheels/wavesim-*.whl
for package in 'triton>=3.9' tinygrad; do
    "${pip[@]}" install "$package" || echo "skipped: pip cannot install $package"
done
"$folder/bin/python" -m pytest --quiet hosts/python/tests
