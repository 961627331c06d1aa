#!/usr/bin/env bash
# Builds the playground: the engine as a WebAssembly module, and the page around it, as static files in web/page/dist.
#
#   scripts/build-web.sh
#
# It needs node with npm, and the target wasm32-unknown-unknown: `rustup target add wasm32-unknown-unknown`. Without it,
# RUST_LIBRARY=DIR names the folder `library` of the compiler's sources (Debian: the package rust-src), from which the
# standard library is built. WASM_BINDGEN=PATH names the command wasm-bindgen, of the version in web/Cargo.lock; by default,
# it is installed below web/target.
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,9s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    ?*)
        echo "usage: $0" >&2
        exit 2
        ;;
esac
cd "$(dirname "$0")/.."
source scripts/wasm-target.sh || { echo "build-web.sh: $wasm_missing" >&2; exit 1; }
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/web/target}
# All browsers support SIMD since 2023. It makes lane loops some three times as fast.
RUSTFLAGS="-C target-feature=+simd128" cargo build --manifest-path web/Cargo.toml --release --target "$target" "${std_flags[@]}"
module=$CARGO_TARGET_DIR/$target/release/wavesim_web.wasm

version=$(sed -n '/^name = "wasm-bindgen"$/{n;s/^version = "\(.*\)"$/\1/p}' web/Cargo.lock)
bindgen=${WASM_BINDGEN:-$CARGO_TARGET_DIR/wasm-bindgen/bin/wasm-bindgen}
if ! "$bindgen" --version 2>/dev/null | grep -qF "$version"; then
    [ -z "${WASM_BINDGEN:-}" ] || { echo "build-web.sh: $bindgen is not version $version" >&2; exit 1; }
    cargo install wasm-bindgen-cli --bin wasm-bindgen --version "$version" --root "$CARGO_TARGET_DIR/wasm-bindgen" --quiet
fi
"$bindgen" "$module" --target web --omit-default-module-path --out-dir web/page/pkg --remove-name-section --remove-producers-section

# wasm-opt makes the module a tenth smaller, if binaryen is installed (Debian and npm: the package binaryen; WASM_OPT=PATH
# names the command).
wasm_opt=${WASM_OPT:-$(command -v wasm-opt || true)}
if [ -n "$wasm_opt" ]; then
    features=(simd bulk-memory nontrapping-float-to-int sign-ext mutable-globals reference-types multivalue)
    "$wasm_opt" -Os "${features[@]/#/--enable-}" web/page/pkg/wavesim_web_bg.wasm -o web/page/pkg/optimised.wasm
    mv web/page/pkg/optimised.wasm web/page/pkg/wavesim_web_bg.wasm
else
    echo "build-web.sh: without wasm-opt (WASM_OPT), the module is a tenth larger than it could be"
fi

cd web/page
[ -d node_modules ] || npm ci --no-audit --no-fund
node compress.mjs pkg/wavesim_web_bg.wasm pkg/wavesim_web.wasm.zst
npm run --silent build
total=0
while IFS= read -r file; do
    size=$(gzip -9 -c "$file" | wc -c)
    total=$((total + size))
    printf '%9d bytes, %8d compressed: %s\n' "$(stat -c %s "$file")" "$size" "$file"
done < <(find dist -type f | sort)
echo "web/page/dist: $total bytes compressed (gzip)"
