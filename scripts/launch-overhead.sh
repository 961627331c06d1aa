#!/usr/bin/env bash
# Measures the overhead of launches: the host layer alone, HIP, OpenCL and Python launch kernels that end at once. Components
# that are not installed are skipped. The times are CPU times of all threads, which depend little on other load of the host.
#
# usage: launch-overhead.sh. PYTHON=FILE is an interpreter with the package, such as test-python.sh installs in target/python.
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,5s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cargo run --quiet --release -p wavesim-runtime --example launch_overhead
programs=hosts/hip/tests/programs
if command -v clang-19 >/dev/null; then
    scripts/install-hip-library.sh "$out/lib" >/dev/null
    clang-19 -x hip -O2 --offload-arch=gfx1100 -std=c++17 -fdeclspec -nogpuinc -nogpulib -include $programs/small_hip.h \
        -c $programs/launches.hip -o "$out/hip.o"
    c++ "$out/hip.o" -L "$out/lib" -lamdhip64 -o "$out/hip"
    LD_LIBRARY_PATH=$out/lib "$out/hip"
else
    echo "skipped: HIP: clang-19 is not installed"
fi
if cc hosts/opencl/tests/programs/launches.c -lOpenCL -o "$out/opencl" 2>/dev/null; then
    scripts/install-opencl-library.sh "$out/opencl-library" >/dev/null
    OCL_ICD_VENDORS=$out/opencl-library "$out/opencl"
else
    echo "skipped: OpenCL: libOpenCL or its headers are not installed"
fi
python=${PYTHON:-target/python/bin/python}
if "$python" -c 'import numpy, wavesim' 2>/dev/null; then
    "$python" - <<'END'
import time
import numpy, wavesim

launch = wavesim.Device("gfx1100").load("examples/scale.s").scale[1, 32]
x, y, count, least = numpy.ones(32, numpy.float32), numpy.zeros(32, numpy.float32), 500, float("inf")
for _ in range(20):  # the minimum counts: other load makes the rest slower
    start = time.thread_time()
    for _ in range(count):
        launch(x, y, 2.5, 32)
    least = min(least, time.thread_time() - start)
print(f"Python, two arrays   {least / count * 1e6:5.1f} us of the CPU")
END
else
    echo "skipped: Python: no package in $python (scripts/test-python.sh installs it)"
fi
