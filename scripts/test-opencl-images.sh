#!/bin/sh
# Runs the image tests of OpenCL's conformance suite (KhronosGroup/OpenCL-CTS) on wavesim, and prints a line for each run.
# Usage: scripts/test-opencl-images.sh [CTS [HEADERS]]: directories with the sources of the suite and of OpenCL's headers.
# Without them, they are cloned from GitHub. Needs cmake, a C++ compiler, libOpenCL, the SPIR-V headers (package
# spirv-headers), and what OpenCL programs need (docs/opencl.md). Builds in WAVESIM_CTS_BUILD (default: target/opencl-cts).
set -eu

# The last commit that the tests were run with.
CTS=b8f8906c251926b1b3679323bfbf3df730b40fb8
HEADERS=v2026.05.29
root=$(cd "$(dirname "$0")/.." && pwd)
build=${WAVESIM_CTS_BUILD:-$root/target/opencl-cts}
mkdir -p "$build"

# Clones a repository at a commit or tag.
clone() {
  if [ ! -d "$build/$1" ]; then
    git clone --quiet --filter=blob:none "https://github.com/KhronosGroup/$1" "$build/$1"
    git -C "$build/$1" checkout --quiet "$2"
  fi
}
if [ $# -ge 1 ]; then cts=$1; else clone OpenCL-CTS "$CTS"; cts=$build/OpenCL-CTS; fi
if [ $# -ge 2 ]; then headers=$2; else clone OpenCL-Headers "$HEADERS"; headers=$build/OpenCL-Headers; fi

library=${WAVESIM_OPENCL:-}
if [ -z "$library" ]; then
  cargo build --release --quiet --manifest-path "$root/Cargo.toml" -p wavesim-opencl
  library=$root/target/release/libwavesim_opencl.so
fi
mkdir -p "$build/vendors"
echo "$library" >"$build/vendors/wavesim.icd"
export OCL_ICD_VENDORS="$build/vendors"

cmake -S "$cts" -B "$build/build" -DCMAKE_BUILD_TYPE=Release -DCL_INCLUDE_DIR="$headers" \
  -DCL_LIB_DIR=/usr/lib/x86_64-linux-gnu -DSPIRV_INCLUDE_DIR=/usr -DOPENCL_LIBRARIES=OpenCL >"$build/cmake.log"
cmake --build "$build/build" --parallel --target test_image_streams test_cl_copy_images test_cl_fill_images \
  test_cl_get_info test_samplerless_reads test_kernel_image_methods test_cl_read_write_images >"$build/build.log"

failed=0
# Runs a test: directory, program, arguments.
run() {
  directory=$1 program=$2
  shift 2
  log=$build/$program-$(echo "$*" | tr -c 'a-zA-Z0-9\n' -).log
  if (cd "$build/build/test_conformance/images/$directory" && "./$program" "$@") >"$log" 2>&1; then
    echo "passed: $program $*"
  else
    echo "FAILED: $program $* ($log)"
    failed=1
  fi
}

run clGetInfo test_cl_get_info small_images
run clCopyImage test_cl_copy_images small_images
run clFillImage test_cl_fill_images small_images
run clReadWriteImage test_cl_read_write_images small_images
run kernel_image_methods test_kernel_image_methods small_images
for order in CL_R CL_RGBA; do
  for type in CL_UNORM_INT8 CL_SNORM_INT16 CL_HALF_FLOAT CL_FLOAT CL_SIGNED_INT8 CL_UNSIGNED_INT32; do
    run samplerlessReads test_samplerless_reads small_images $order $type
    for filter in CL_FILTER_NEAREST CL_FILTER_LINEAR; do
      case $filter-$type in CL_FILTER_LINEAR-*SIGNED*) continue ;; esac
      run kernel_read_write test_image_streams small_images $order $type $filter read
    done
    run kernel_read_write test_image_streams small_images $order $type write
  done
done
exit $failed
