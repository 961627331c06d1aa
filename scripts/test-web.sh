#!/usr/bin/env bash
# Tests the playground in Chromium:
#
#   scripts/test-web.sh              builds the page (scripts/build-web.sh), and tests every feature, with both engines
#   scripts/test-web.sh --native     without WebAssembly: the page with target/release/wavesim serve, and only the first tests
#
# It needs node with npm, and Chromium (Debian: the package chromium; CHROMIUM=PATH names another); otherwise it is skipped.
# Screenshots are stored in web/page/shots.
set -euo pipefail
native=
case ${1:-} in
    -h | --help)
        sed -n '2,8s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --native) native=1 ;;
    ?*)
        echo "usage: $0 [--native]" >&2
        exit 2
        ;;
esac
cd "$(dirname "$0")/.."
command -v npm >/dev/null || { echo "skipped: npm is not installed"; exit 0; }
[ -n "${CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome >/dev/null || { echo "skipped: Chromium is not installed"; exit 0; }
wavesim=${WAVESIM:-target/release/wavesim}
[ -x "$wavesim" ] || { echo "test-web.sh: $wavesim is missing (cargo build --release -p wavesim, or WAVESIM=PATH)" >&2; exit 1; }
[ -d web/page/node_modules ] || npm --prefix web/page ci --no-audit --no-fund --silent || { echo "skipped: npm cannot install the dependencies of the page"; exit 0; }

object=$(mktemp --suffix=.co)
trap 'rm -rf "$object" "$object".*; [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true' EXIT
"$wavesim" asm examples/scale.s -o "$object"
# An object with two kernels of the same code.
{ cat examples/scale.s; sed -n 's/\bscale\b/other/; s/\bdone\b/finished/; /^kernel other/,$p' examples/scale.s; } >"$object.s"
"$wavesim" asm "$object.s" -o "$object.two"
export OBJECT=$object OBJECTS=$object.two

if [ -z "$native" ]; then
    scripts/build-web.sh
    node web/page/test/run.mjs
fi
npm --prefix web/page run --silent build:native >"$object.build" 2>&1 || { cat "$object.build" >&2; exit 1; }
"$wavesim" serve --port 0 --page web/page/dist-native --links "$object.links" 2>"$object.log" &
server=$!
for _ in $(seq 50); do
    url=$(sed -n 's/.*serving \(http[^ ]*\) .*/\1/p' "$object.log")
    [ -n "$url" ] && break
    sleep 0.1
done
[ -n "$url" ] || { cat "$object.log" >&2; exit 1; }
node web/page/test/run.mjs ${native:+--smoke} --url "$url"
