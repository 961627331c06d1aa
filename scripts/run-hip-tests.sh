#!/bin/bash
# Compiles and runs files of AMD's hip-tests on wavesim, each as a program of its own, and prints a table.
#
#   scripts/run-hip-tests.sh CHECKOUT OUT FILE|FOLDER...
#
# CHECKOUT is a clone of https://github.com/ROCm/hip-tests at commit 87c8a0417c6f4ef2c7d905b71eb42e02a0c4ef4a, OUT a folder
# for programs and logs (they are kept and not compiled again), and the rest are below catch/unit: `event`,
# `memory/hipMemcpy.cc`. ROCM and BITCODE name the headers of HIP and ROCm's device libraries, HIP_LIBRARY the folder of
# wavesim's library (docs/hip.md). Each test case has SECONDS_EACH seconds, 120 without it.
set -eu
if [ $# -lt 3 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
checkout=$(realpath "$1")/catch
mkdir -p "$2"
out=$(realpath "$2")
shift 2
: "${ROCM:?the folder with include/hip}" "${BITCODE:?the folder of the device libraries}"
: "${HIP_LIBRARY:?the folder of libamdhip64.so}"
clang=${CLANG:-clang++-19}
flags=(-std=c++17 -w -O1 -D__HIP_PLATFORM_AMD__ "-DKERNELS_PATH=\"$checkout/kernels/\"")
flags+=(-I "$checkout/include" -I "$checkout/external/Catch2" -I "$checkout/external/picojson" -I "$checkout/kernels")
hip=(-x hip "--offload-arch=${WAVESIM_TARGET:-gfx1100}" "--rocm-path=$ROCM" "--rocm-device-lib-path=$BITCODE")

# The parts that all programs share.
for part in main hip_test_context hip_test_features; do
    [ -e "$out/$part.o" ] || "$clang" "${hip[@]}" "${flags[@]}" -c "$checkout/hipTestMain/$part.cc" -o "$out/$part.o"
done

files=()
for name in "$@"; do
    if [ -d "$checkout/unit/$name" ]; then
        while read -r file; do files+=("$name/$file"); done < <(cd "$checkout/unit/$name" && grep -l TEST_CASE -- *.cc)
    else
        files+=("$name")
    fi
done

# Lists the files of a folder without tests.
helpers() {
    grep -LE 'TEST_CASE|int main' "$checkout/unit/$1"/*.c{c,pp} 2>/dev/null || true
}

# Prints the objects that the tests of a folder share: those of its helpers, except for modules that tests load as files.
shared() {
    local file object
    while read -r file; do
        object=$out/${1//\//-}-$(basename "${file%.*}").shared.o
        [ -e "$object" ] || "$clang" "${hip[@]}" "${flags[@]}" -c "$file" -o "$object" 2>/dev/null || continue
        echo "$object"
    done < <(helpers "$1" | xargs -r grep -L 'extern "C"\|texture<')
}

# Makes the folder in which the tests of a folder run, with the files that they open, headers, settings, code objects and
# listings of their assembly, and the programs that they start.
prepare() {
    local file stem count run=$out/run/$1
    [ ! -d "$run" ] || return 0
    mkdir -p "$run"
    (cd "$checkout/unit/$1" && find . -name '*.h' -o -name '*.json' -o -name '*.txt' ! -name CMakeLists.txt) | while read -r file; do
        mkdir -p "$run/$(dirname "$file")"
        cp "$checkout/unit/$1/$file" "$run/$file"
    done
    while read -r file; do
        stem=$(basename "${file%.*}")
        "$clang" "${hip[@]}" "${flags[@]}" --cuda-device-only "$file" -o "$run/$stem.code" 2>/dev/null || true
        if grep -qF "\"$stem.s\"" "$checkout/unit/$1"/*.cc; then
            "$clang" "${hip[@]}" "${flags[@]}" --cuda-device-only -S "$file" -o "$run/$stem.s" 2>/dev/null || true
        fi
    done < <(helpers "$1")
    for count in $(sed -n 's/.*-amdgpu-kernarg-preload-count=//p' "$checkout/unit/$1/CMakeLists.txt"); do
        "$clang" "${hip[@]}" "${flags[@]}" --cuda-device-only -mllvm "-amdgpu-kernarg-preload-count=$count" \
            "$checkout/unit/$1/copiousArgKernel.cc" -o "$run/copiousArgKernel$count.code" 2>/dev/null || true
    done
    while read -r file; do
        "$clang" "${hip[@]}" "${flags[@]}" "$file" -L "$HIP_LIBRARY" -lamdhip64 -lhiprtc -o "$run/$(basename "${file%.*}")" \
            2>/dev/null || true
    done < <(grep -l 'int main' "$checkout/unit/$1"/*.cc || true)
}

printf '%-60s %7s %7s %7s  %s\n' file passed failed seconds remark
for file in "${files[@]}"; do
    name=${file//\//-}
    program=$out/${name%.cc}
    log=$program.log
    if [ ! -e "$program" ]; then
        mapfile -t objects < <(shared "$(dirname "$file")")
        if ! "$clang" "${hip[@]}" "${flags[@]}" -c "$checkout/unit/$file" -o "$program.o" >"$log" 2>&1 ||
            ! "$clang" "$program.o" "$out/main.o" "$out/hip_test_context.o" "$out/hip_test_features.o" "${objects[@]}" \
                -L "$HIP_LIBRARY" -lamdhip64 -lhiprtc -lpthread -lrt -ldl -o "$program" >>"$log" 2>&1; then
            printf '%-60s %7s %7s %7s  %s\n' "$file" 0 0 - "not compiled: $(grep -m1 -o 'error: .*' "$log" | cut -c1-60)"
            continue
        fi
        rm "$program.o"
    fi
    prepare "$(dirname "$file")"
    started=$(date +%s)
    passed=0 failed=0 remark=
    # As in the suite's own run, each test case is a process of its own. Commas and brackets would divide the name.
    mapfile -t cases < <(cd "$out/run/$(dirname "$file")" && LD_LIBRARY_PATH=$HIP_LIBRARY "$program" --list-test-names-only 2>/dev/null | sed '/^$/d')
    : >"$log"
    for case in "${cases[@]}"; do
        status=0
        (cd "$out/run/$(dirname "$file")" &&
            LD_LIBRARY_PATH=$HIP_LIBRARY WAVESIM_ROCM_PATH=$ROCM WAVESIM_DEVICE_LIBS=$BITCODE \
                timeout --kill-after=5 "${SECONDS_EACH:-120}" "$program" "$(sed 's/[],[]/\\&/g' <<<"$case")" >>"$log" 2>&1) || status=$?
        case $status in
            0) passed=$((passed + 1)) ;;
            124 | 137) failed=$((failed + 1)) remark=${remark:-stopped in $case} ;;
            *) failed=$((failed + 1)) remark=${remark:-$case} ;;
        esac
    done
    seconds=$(($(date +%s) - started))
    printf '%-60s %7s %7s %7s  %s\n' "$file" "$passed" "$failed" "$seconds" "$remark"
done
