#!/usr/bin/env bash
# Builds the library for WebAssembly, where there are no threads, files and processes, and runs a kernel in it if there is node:
#
#   scripts/build-wasm.sh
#
# It needs the target wasm32-unknown-unknown: `rustup target add wasm32-unknown-unknown`. Without it, RUST_LIBRARY=DIR names the folder
# `library` of the compiler's own sources (Debian: the package rust-src), and the standard library is built too.
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
target=wasm32-unknown-unknown
flags=()
installed() { [ -n "$(ls "$(rustc --print target-libdir --target $target 2>/dev/null)"/libstd-*.rlib 2>/dev/null)" ]; }
if [ -n "${RUST_LIBRARY:-}" ]; then
    [ -f "$RUST_LIBRARY/std/Cargo.toml" ] || { echo "build-wasm.sh: RUST_LIBRARY=$RUST_LIBRARY has no std" >&2; exit 1; }
    # -Zbuild-std, which stable compilers take with RUSTC_BOOTSTRAP, with a library that is not in the toolchain.
    export RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT=$RUST_LIBRARY
    flags=(-Zbuild-std=std,panic_abort)
elif ! installed; then
    echo "skipped: the target $target is not installed (rustup target add $target, or RUST_LIBRARY: $0 --help)"
    exit 0
fi
cargo build --release --target $target "${flags[@]}" -p wavesim --no-default-features --example wasm
module=${CARGO_TARGET_DIR:-target}/$target/release/examples/wasm.wasm
echo "$module: $(stat -c %s "$module") bytes"
command -v node >/dev/null || { echo "not run: there is no node"; exit 0; }
node -e '
const module = new WebAssembly.Module(require("fs").readFileSync(process.argv[1]));
const sum = new WebAssembly.Instance(module, {}).exports.saxpy_sum();
console.log("examples/saxpy.rdna: the sum of its results is", sum);
// Of 2.5 * (i / 4) + (256 - i) for i below 256.
process.exitCode = sum === 53296 ? 0 : 1;
' "$module"
