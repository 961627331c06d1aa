#!/usr/bin/env bash
# Loads, runs and frees a code object repeatedly with the C library, under valgrind's memcheck: nothing may leak.
#
# usage: leaks.sh [ROUNDS], by default 20. LIBRARY=FILE uses an existing build of the library.
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,4s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
rounds=${1:-20}
for tool in valgrind cc; do
    command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 0; }
done
if [ -z "${LIBRARY:-}" ]; then
    cargo build --quiet --release -p wavesim-capi
    LIBRARY=${CARGO_TARGET_DIR:-target}/release/libwavesim_capi.so
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cc -g -I capi/include capi/tests/programs/loop.c "$LIBRARY" -Wl,-rpath,"$(realpath "$(dirname "$LIBRARY")")" -o "$out/loop"
object=tests/filetests/code_objects/vadd/vadd.gfx1100.co
# Bytes that are still reachable at the end, for a number of rounds. A leak per round would grow with this number.
reachable() {
    valgrind --leak-check=full --errors-for-leak-kinds=definite,indirect --error-exitcode=99 \
        "$out/loop" "$object" "$1" >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
    sed -n 's/.*still reachable: \([0-9,]*\) bytes.*/\1/p' "$out/log"
}
few=$(reachable 2)
many=$(reachable "$rounds")
if [ "$few" != "$many" ]; then
    echo "$few bytes are reachable after 2 rounds, $many after $rounds"
    exit 1
fi
echo "$rounds rounds: no leak; $many bytes are reachable, as after 2"
