#!/usr/bin/env bash
# Compiles examples and tests of hipCUB and rocPRIM with clang 19, runs them on wavesim, and prints a table. Headers and device libraries
# come from Debian's packages (trixie, sid), which are unpacked into FOLDER, by default target/hip, and not installed.
#
# usage: test-hip.sh [FOLDER]. LIBRARY=FILE takes a libamdhip64.so that is built already; PROGRAMS='A B' runs only these.
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,5s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
folder=${1:-target/hip}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
for tool in clang-19 ld.lld-19 clang-offload-bundler-19 apt-get dpkg; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool"; exit 0; }
done

# apt of another suite, which leaves the system as it is: suite SUITE ARGUMENTS
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
if [ ! -f "$folder/fetched" ]; then
    (
        mkdir -p "$folder/packages" && cd "$folder/packages"
        suite trixie download rocm-device-libs-17
        suite sid download libamdhip64-dev libhsa-runtime-dev libhipcub-dev librocprim-dev
        apt-get -qq download libgtest-dev
        suite sid source --download-only --tar-only hipcub rocprim
        for package in *.deb; do dpkg -x "$package" "$folder/rocm"; done
        for source in *.orig.tar.gz; do tar -xzf "$source" -C "$folder"; done
    ) || { echo "skipped: apt cannot fetch the packages"; exit 0; }
    touch "$folder/fetched"
fi
hipcub=$(echo "$folder"/hipCUB-*)
rocprim=$(echo "$folder"/rocPRIM-*)
# Random integers of these examples never come to an end (rocm-6.4.3): a `break` is only for floating-point numbers.
sed -i 's/if HIPCUB_IF_CONSTEXPR(std::is_floating_point<K>::value)/if(!std::is_floating_point<K>::value) break; else/' \
    "$hipcub/examples/example_utils.hpp"

rocm=$folder/rocm/usr
scripts/install-hip-library.sh "$folder/lib" >/dev/null
mkdir -p "$folder/bin"
programs=${PROGRAMS:-"$hipcub"/examples/device/*.cpp "$hipcub"/examples/block/*.cu "$rocprim"/example/*.cpp
    "$rocprim"/test/rocprim/test_{basic,constant_iterator,counting_iterator,zip_iterator,thread}.cpp
    "$hipcub"/test/hipcub/test_hipcub_{grid,util_ptx,thread,vector}.cpp}
failed=0
count=0
now() { date +%s%N; }
# shellcheck disable=SC2086
for source in $(eval echo $programs); do
    name=$(basename "${source%.*}")
    at=$folder/bin/$name
    start=$(now)
    result=passed
    if [ ! "$at" -nt "$source" ]; then
        clang-19 -x hip --offload-arch=gfx1100 -O2 -std=c++17 -w -include hip/hip_runtime.h --rocm-path="$rocm" \
            --rocm-device-lib-path="$rocm/lib/llvm-17/lib/clang/17/amdgcn/bitcode" -I"$rocm/include" \
            -I"$(dirname "$source")/.." -I"$hipcub/test/hipcub" -c "$source" -o "$at.o" >"$at.log" 2>&1 &&
            c++ "$at.o" -L "$folder/lib" -lamdhip64 -L "$rocm/lib/x86_64-linux-gnu" -lgtest -lgtest_main -lpthread \
                -o "$at" >>"$at.log" 2>&1 || result="not compiled: $at.log"
    fi
    compiled=$(now)
    if [ "$result" = passed ]; then
        LD_LIBRARY_PATH=$folder/lib timeout 300 "$at" >"$at.log" 2>&1 || result="failed ($?): $at.log"
        if grep -qE '\bFAIL' "$at.log"; then result="failed: $at.log"; fi
    fi
    [ "$result" = passed ] || failed=$((failed + 1))
    count=$((count + 1))
    printf '%-45s compiled in %4d s, run in %6d ms  %s\n' "$name" $(((compiled - start) / 1000000000)) \
        $((($(now) - compiled) / 1000000)) "$result"
done
echo "$((count - failed)) of $count passed"
[ $failed -eq 0 ]
