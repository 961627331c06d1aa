#!/usr/bin/env bash
# Compiles examples and tests of hipCUB and rocPRIM with clang 19, runs them on wavesim, and prints a table. Headers and device libraries
# come from Debian's packages (trixie, sid), which are unpacked into FOLDER, by default target/hip, and not installed.
#
# usage: test-hip.sh [FOLDER]. LIBRARY=FILE uses an existing libamdhip64.so; PROGRAMS='A B' runs only these programs, given by name
# or path; JOBS=N compiles N at once, by default as many as there are CPUs. Compiled programs are kept.
# PREBUILD=1 instead compiles the objects in hosts/hip/tests/prebuilt, which tests link if clang is not installed.
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,7s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
folder=${1:-target/hip}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
for tool in clang-19 ld.lld-19 clang-offload-bundler-19 apt-get dpkg; do
    command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 0; }
done

# Runs apt for another suite, without changing the system: suite SUITE ARGUMENTS
suite() {
    local name=$1 at=$folder/apt/$1
    shift
    if [ ! -d "$at" ]; then
        mkdir -p "$at/lists/partial" "$at/cache/archives/partial"
        local key=signed-by=/usr/share/keyrings/debian-archive-keyring.gpg
        for kind in deb deb-src; do echo "$kind [$key] http://deb.debian.org/debian $name main"; done >"$at/sources.list"
        suite "$name" update >/dev/null
    fi
    apt-get -qq -o Dir::State::lists="$at/lists" -o Dir::Cache="$at/cache" -o Dir::Etc::sourcelist="$at/sources.list" \
        -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root "$@"
}
# Each step needs the previous one, so the first failure ends the script.
fetch() {
    mkdir -p "$folder/packages" && cd "$folder/packages" &&
        suite trixie download rocm-device-libs-17 &&
        suite sid download libamdhip64-dev libhsa-runtime-dev libhipcub-dev librocprim-dev &&
        apt-get -qq -o APT::Sandbox::User=root download libgtest-dev &&
        suite sid source --download-only --tar-only hipcub rocprim &&
        find . -name '*.deb' -exec dpkg -x {} "$folder/rocm" \; &&
        find . -name '*.orig.tar.gz' -exec tar -xzf {} -C "$folder" \; &&
        touch "$folder/fetched"
}
if [ ! -f "$folder/fetched" ]; then
    (fetch) || { echo "skipped: apt cannot fetch the packages"; exit 0; }
fi
hipcub=$(echo "$folder"/hipCUB-*)
rocprim=$(echo "$folder"/rocPRIM-*)
# The generation of random integers in these examples does not terminate (rocm-6.4.3): its `break` is only reached for
# floating-point numbers.
sed -i 's/if HIPCUB_IF_CONSTEXPR(std::is_floating_point<K>::value)/if(!std::is_floating_point<K>::value) break; else/' \
    "$hipcub/examples/example_utils.hpp"

rocm=$folder/rocm/usr
bitcode=$rocm/lib/llvm-17/lib/clang/17/amdgcn/bitcode
if [ -n "${PREBUILD:-}" ]; then
    cd hosts/hip/tests
    for name in vector_add wrong symbols features; do
        case $name in
            features) headers=(--rocm-path="$rocm" --rocm-device-lib-path="$bitcode" -ffile-prefix-map="$rocm=") ;;
            *) headers=(-nogpuinc -nogpulib -include programs/small_hip.h) ;;
        esac
        clang-19 -x hip --offload-arch=gfx1100 -O2 -g1 -std=c++17 -w -fdeclspec -fno-ident -ffile-compilation-dir=. \
            "${headers[@]}" -c programs/$name.hip -o prebuilt/$name.o
    done
    exit 0
fi
scripts/install-hip-library.sh "$folder/lib" >/dev/null
mkdir -p "$folder/bin"
# Tests whose names end with .in are templates; only their first part is compiled.
programs=(
    "$hipcub"/examples/device/*.cpp "$rocprim"/example/*.cpp
    "$rocprim"/test/rocprim/test_{basic,constant_iterator,counting_iterator,transform_iterator,zip_iterator,thread,intrinsics}.cpp
    "$hipcub"/test/hipcub/test_hipcub_{basic,grid,vector,thread,thread_operators,warp_reduce,warp_scan}.cpp
    "$hipcub"/test/hipcub/test_hipcub_{block_reduce,block_scan,block_shuffle}.cpp
    "$hipcub"/test/hipcub/test_hipcub_device_{for,scan,reduce,select,partition}.cpp
    "$hipcub"/test/hipcub/test_hipcub_device_radix_sort.cpp.in
)
if [ -n "${PROGRAMS:-}" ]; then
    chosen=()
    for wish in $PROGRAMS; do
        for source in "${programs[@]}" "$wish"; do
            name=$(basename "$source")
            if [ "${name%%.*}" = "$wish" ] || { [ "$source" = "$wish" ] && [ -f "$wish" ]; }; then chosen+=("$source"); fi
        done
    done
    programs=("${chosen[@]}")
fi

# compile SOURCE: the output of clang is in NAME.log, if it fails.
compile() {
    local source=$1 name at more=()
    name=$(basename "$source")
    name=${name%%.*}
    at=$folder/bin/$name
    if [ "$at" -nt "$source" ]; then return; fi
    local base
    base=$(dirname "$source")
    if [ "${source%.in}" != "$source" ]; then
        sed 's/#cmakedefine *\([A-Z_]*\).*/#define \1 0/' "$source" >"$base/$name.first.cpp"
        source=$base/$name.first.cpp
    fi
    # Two tests have several sources.
    case $name in *_basic) more=("$base"/detail/*.cpp) ;; esac
    rm -f "$at".*.o
    for file in "$source" "${more[@]}"; do
        clang-19 -x hip --offload-arch=gfx1100 -O2 -std=c++17 -w -include hip/hip_runtime.h --rocm-path="$rocm" \
            --rocm-device-lib-path="$bitcode" -I"$rocm/include" -I"$base" -I"$base/.." \
            -I"$hipcub/test/hipcub" -c "$file" -o "$at.$(basename "$file").o" >"$at.log" 2>&1 || return 0
    done
    c++ "$at".*.o -L "$folder/lib" -lamdhip64 -L "$rocm/lib/x86_64-linux-gnu" -lgtest -lgtest_main -lpthread \
        -o "$at" >>"$at.log" 2>&1 || return 0
    rm "$at".*.o
}
export -f compile
export folder rocm hipcub bitcode
started=$SECONDS
printf '%s\0' "${programs[@]}" | xargs -0 -n 1 -P "${JOBS:-$(nproc)}" bash -c 'compile "$1"' compile
echo "compiled in $((SECONDS - started)) s"

failed=0
now() { date +%s%N; }
for source in "${programs[@]}"; do
    name=$(basename "$source")
    name=${name%%.*}
    at=$folder/bin/$name
    start=$(now)
    result=passed
    if [ ! -x "$at" ]; then
        result="not compiled: $at.log"
    else
        # Tests of large sizes and indices have arrays of a billion elements and more; sorts of 128-bit keys take minutes.
        GTEST_FILTER='-*Large*:*Over4G*:Id57/*:Id58/*' LD_LIBRARY_PATH=$folder/lib timeout 1800 "$at" >"$at.log" 2>&1 || result="failed ($?): $at.log"
        if grep -qE '\bFAIL' "$at.log"; then result="failed: $at.log"; fi
        tests=$(sed -n 's/^\[  PASSED  \] \([0-9]* tests*\)\.$/ (\1)/p' "$at.log")
        # An error of rocPRIM (rocm-6.4.3): its second kernel has four times as many workgroups as its buffers have room for.
        if [ "$name" = example_temporary_storage ] && grep -q 'just beyond the end of hipMalloc' "$at.log"; then
            result="passed (its accesses beyond its buffers are reported)"
        fi
    fi
    case $result in passed*) ;; *) failed=$((failed + 1)) ;; esac
    printf '%-42s %7d ms  %s\n' "$name" $((($(now) - start) / 1000000)) "$result${tests:-}"
    tests=
done
echo "$((${#programs[@]} - failed)) of ${#programs[@]} passed"
[ $failed -eq 0 ]
