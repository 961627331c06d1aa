# Sourced by the scripts that build for WebAssembly, in the root of the tree. It sets `target`, and `std_flags` for cargo with
# their environment. It returns 1 if there is no standard library for the target, and exits if RUST_LIBRARY is invalid.
target=wasm32-unknown-unknown
std_flags=()
wasm_missing="the target $target is not installed (rustup target add $target, or RUST_LIBRARY: $0 --help)"
if [ -n "${RUST_LIBRARY:-}" ]; then
    [ -f "$RUST_LIBRARY/std/Cargo.toml" ] || { echo "$0: RUST_LIBRARY=$RUST_LIBRARY has no std" >&2; exit 1; }
    # -Zbuild-std, which stable compilers accept with RUSTC_BOOTSTRAP, with a library outside of the toolchain.
    export RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT=$RUST_LIBRARY
    std_flags=(-Zbuild-std=std,panic_abort)
else
    [ -n "$(ls "$(rustc --print target-libdir --target $target 2>/dev/null)"/libstd-*.rlib 2>/dev/null)" ]
fi
