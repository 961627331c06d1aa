#!/bin/sh
# Counts the aarch64 instructions of launches in qemu's emulation, with the interpreter and with compiled code.
# usage: count-aarch64.sh WAVESIM [WORKLOAD...]; WAVESIM is a build for aarch64-unknown-linux-gnu with the features
# jit and bench. Needs a C compiler and qemu-user 7.2 to 8.1.
set -eu
wavesim=$1
shift
[ $# -gt 0 ] || set -- alu_f32 alu_int mandelbrot nbody
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cc -shared -fPIC -O2 -o "$folder/count.so" "$(dirname "$0")/qemu-count.c"
count() {
    qemu-aarch64 -L /usr/aarch64-linux-gnu -plugin "$folder/count.so" "$wavesim" bench --launch "$@" 2>&1 >"$folder/out" |
        sed -n 's/^instructions: //p'
}
for workload; do
    interpreted=$(count "$workload")
    compiled=$(count "$workload" --engine jit)
    awk -v name="$workload" -v a="$interpreted" -v b="$compiled" \
        'BEGIN { printf "%-12s %14d interpreted %14d compiled %6.2f times as many\n", name, a, b, a / b }'
done
