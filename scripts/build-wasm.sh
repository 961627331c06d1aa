#!/usr/bin/env bash
# Builds the library for WebAssembly, without threads, files and processes, and runs a kernel in it if node is installed:
#
#   scripts/build-wasm.sh
#
# It needs the target wasm32-unknown-unknown: `rustup target add wasm32-unknown-unknown`. Without it, RUST_LIBRARY=DIR names the folder
# `library` of the compiler's sources (Debian: the package rust-src), from which the standard library is built.
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,7s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    ?*)
        echo "usage: $0" >&2
        exit 2
        ;;
esac
cd "$(dirname "$0")/.."
if ! source scripts/wasm-target.sh; then
    echo "skipped: $wasm_missing"
    exit 0
fi
# The module is only for testing, so it is not optimised. (The profile is that of the native build, to share the
# dependencies of the macros.)
fast=(--config profile.release.opt-level=0)
for package in isa-spec wavesim-{array,asm,assembler,debug,inspect,loader,text,trace} wavesim; do
    fast+=(--config "profile.release.package.$package.opt-level=0")
done
cargo build --release --target $target "${std_flags[@]}" "${fast[@]}" -p wavesim-wasm
module=${CARGO_TARGET_DIR:-target}/$target/release/wavesim_wasm.wasm
echo "$module: $(stat -c %s "$module") bytes"
command -v node >/dev/null || { echo "not run: node is not installed"; exit 0; }
node -e '
const module = new WebAssembly.Module(require("fs").readFileSync(process.argv[1]));
const sum = new WebAssembly.Instance(module, {}).exports.saxpy_sum();
console.log("examples/saxpy.rdna: the sum of its results is", sum);
// Of 2.5 * (i / 4) + (256 - i) for i below 256.
process.exitCode = sum === 53296 ? 0 : 1;
' "$module"
