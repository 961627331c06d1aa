#!/usr/bin/env bash
# Installs tools that some tests need: LLVM 19's assembler, compiler and linker, valgrind, z3, qemu, the OpenCL loader, headers
# and libclc, the WebAssembly target. Where this is impossible (no apt, no rights, no network), these tests are skipped.
set -uo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,3s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    ?*)
        echo "usage: $0" >&2
        exit 2
        ;;
esac
# Only rustup can add a target to an installed toolchain.
if command -v rustup >/dev/null && ! timeout 120 rustup --quiet target add wasm32-unknown-unknown >/dev/null 2>&1; then
    echo "not installed: wasm32-unknown-unknown; the build for it is skipped"
fi
missing=()
for tool in llvm-mc-19:llvm-19 clang-19:clang-19 ld.lld-19:lld-19 valgrind:valgrind z3:z3 qemu-x86_64:qemu-user; do
    command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
done
# For OpenCL programs: the ICD loader, its headers, and the built-in functions of OpenCL C.
for file in include/CL/cl.h:opencl-headers lib/*/libOpenCL.so:ocl-icd-opencl-dev lib/clc/amdgcn--amdhsa.bc:libclc-19; do
    compgen -G "/usr/${file%%:*}" >/dev/null || missing+=("${file##*:}")
done
[ ${#missing[@]} -eq 0 ] && exit 0
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
install() {
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}
if command -v apt-get >/dev/null && "${as_root[@]}" apt-get -qq update; then
    install "${missing[@]}" && exit 0
    # Each is installed separately, so that a package that does not exist does not prevent the others.
    left=()
    for package in "${missing[@]}"; do
        install "$package" || left+=("$package")
    done
    missing=("${left[@]}")
    [ ${#missing[@]} -eq 0 ] && exit 0
fi
echo "not installed: ${missing[*]}; tests that need them are skipped"
