#!/usr/bin/env bash
# Runs a corpus of kernels under a tool that detects accesses outside of allocated host memory, and uses of uninitialised memory:
#
#   scripts/memory-errors.sh valgrind   the release binary under memcheck; CI does this, as the binary exists already
#   scripts/memory-errors.sh asan       a build with AddressSanitizer, which also covers the stack and statics; takes minutes
#
# First, the tool must find planted errors. WAVESIM=FILE and PLANTED=FILE name another binary and another build of
# simulator/examples/planted_errors.rs. Compiled code runs under memcheck only: AddressSanitizer does not instrument it.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
target=x86_64-unknown-linux-gnu
# The exit code if the tool reports an error; distinct from those of wavesim.
found=99

case "${1:-}" in
valgrind)
    command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 0; }
    build=target/release
    [ -n "${WAVESIM:-}" ] || cargo build --release -p wavesim --bin wavesim --example planted_errors
    engines=(interpreter jit)
    tool=(valgrind --quiet --error-exitcode=$found --partial-loads-ok=no --leak-check=no --num-callers=8)
    ;;
asan)
    # An unstable flag, which stable compilers accept with RUSTC_BOOTSTRAP. The sanitizer does not instrument asm!.
    export RUSTC_BOOTSTRAP=1
    build=target/asan/$target/debug
    [ -n "${WAVESIM:-}" ] || RUSTFLAGS="-Zsanitizer=address --cfg portable_memory" \
        cargo build -p wavesim --bin wavesim --example planted_errors --target $target --target-dir target/asan
    engines=(interpreter)
    tool=(env ASAN_OPTIONS=exitcode=$found:detect_leaks=0)
    ;;
*)
    echo "usage: scripts/memory-errors.sh valgrind|asan" >&2
    exit 2
    ;;
esac
wavesim=${WAVESIM:-$build/wavesim}
planted=${PLANTED:-$build/examples/planted_errors}

# The planted errors violate the contract of `map_host`: a load and a store beyond the caller's bytes.
for engine in "${engines[@]}"; do
    how=${engine/jit/compiled}
    for access in load store; do
        code=0
        "${tool[@]}" "$planted" $access "$how" >"$out/log" 2>&1 || code=$?
        [ $code -eq $found ] ||
            { cat "$out/log"; echo "the planted $access was not found in the $engine (exit code $code)"; exit 1; }
    done
    "${tool[@]}" "$planted" nothing "$how" >/dev/null
done

# Many constants: more than the register files of a wave hold.
constants() {
    echo "---"
    echo "out_y: u32[32]"
    echo "local = 32, 1, 1"
    echo "---"
    echo "  s_load_b64 s[6:7], s[3:4], 0"
    echo "  v_mov_b32 v1, 0"
    for n in $(seq 1000 1700); do echo "  v_add_nc_u32 v1, $((n * 77)), v1"; done
    for n in $(seq 1000 1300); do echo "  s_add_u32 s8, s8, $((n * 91))"; done
    echo "  v_lshlrev_b32 v0, 2, v0"
    echo "  s_waitcnt lgkmcnt(0)"
    echo "  global_store_b32 v0, v1, s[6:7]"
    echo "  s_endpgm"
}
constants >"$out/constants.rdna"

# Compiled code runs from the first instruction on.
export WAVESIM_COMPILE_AFTER=0

# One command line per line: all kinds of memory (global, LDS, scratch, buffers, atomics), both wave sizes, threads, engines,
# observed runs.
list() {
    for engine in "${engines[@]}"; do
        for kernel in examples/{arange,mandelbrot,matmul,saxpy}.rdna tests/filetests/kernels/*.rdna; do
            echo "run $kernel --engine $engine"
            # Compilation takes most of the time of compiled runs, so that few of them have waves of 64.
            case $engine-$kernel in jit-*/matmul.rdna | jit-*/scan.rdna | jit-*/spill.rdna | interpreter-*) ;; *) continue ;; esac
            # CDNA 5 has no waves of 64.
            ! grep -q '^arch = cdna5' "$kernel" || continue
            echo "run $kernel --wave 64 --threads 2 --engine $engine"
        done
        echo "run $out/constants.rdna --engine $engine"
        for kernel in saxpy matmul; do echo "run examples/$kernel.rdna --arch rdna4 --engine $engine"; done
        for launch in tests/filetests/code_objects/{dynlds,relocated,struct_arg,vadd}/launch.json; do
            echo "launch $launch --check --engine $engine"
        done
    done
    for kernel in tests/filetests/kernels/{bitonic,histogram,spill,typed_buffer}.rdna; do echo "check $kernel"; done
    echo "run examples/riscv_gpu/vector_add.as examples/riscv_gpu/vector_add.data"
}

one() {
    local code=0 log=$out/log.$2
    # shellcheck disable=SC2086
    "${tool[@]}" "$wavesim" $1 >"$log" 2>&1 || code=$?
    [ $code -eq 0 ] || { cat "$log"; echo "wavesim $1: exit code $code"; return 1; }
}

count=0
failed=0
running=0
while read -r line; do
    one "$line" $count &
    count=$((count + 1)) running=$((running + 1))
    if [ $running -ge "$(nproc)" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
done < <(list)
while [ $running -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
[ $failed -eq 0 ] || exit 1
echo "$1: no memory error in $count runs; the planted ones were found"
