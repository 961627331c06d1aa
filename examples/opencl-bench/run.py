#!/usr/bin/env python3
"""Runs the kernels of kernels.cl on wavesim, on pocl, and as C for the host, and prints a table in Markdown.

    examples/opencl-bench/run.py [--threads N] [KERNEL...]
    examples/opencl-bench/run.py --scaling N [KERNEL...]

Needs clang-19 (or $CC), OpenCL's headers and loader, and pocl (Debian: ocl-icd-opencl-dev, pocl-opencl-icd).
wavesim's library is target/release/libwavesim_opencl.so, or $WAVESIM_OPENCL_LIBRARY. Each time is the CPU time of a
warm launch. --scaling compares the time that passes with one thread of wavesim and with N, which takes N idle processors.
"""

import argparse
import datetime
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
POCL = pathlib.Path("/etc/OpenCL/vendors/pocl.icd")


def build(folder):
    program = folder / "bench"
    compiler = os.environ.get("CC", "clang-19")
    sources = [HERE / "bench.c", HERE / "native.c"]
    flags = ["-O3", "-march=native", "-ffp-contract=off"]
    subprocess.run([compiler, *flags, *sources, "-lOpenCL", "-lm", "-o", program], check=True)
    version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True)
    return program, version.stdout.splitlines()[0]


def run(program, kernels, icd, environment):
    """Returns the platform's version, and for each kernel the milliseconds of the device and of the host."""
    result = subprocess.run(
        [program, HERE / "kernels.cl", *kernels],
        env=os.environ | environment | {"OCL_ICD_VENDORS": str(icd)},
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = [line.split() for line in result.stdout.splitlines()]
    wrong = [line[0] for line in lines if line[-1] == "wrong"]
    if result.returncode:
        sys.exit(f"{icd}: exit status {result.returncode}; wrong results: {' '.join(wrong) or 'none'}")
    times = {name: (float(device), float(host)) for name, device, host in lines[1:]}
    return " ".join(lines[0][1:]), times


def print_scaling(program, kernels, icd, own, threads):
    """Prints how much faster wavesim is with this number of threads than with one: medians of five pairs of runs."""
    ratios = {}
    for _ in range(5):
        times = []
        for count in (1, threads):
            settings = own | {"WAVESIM_THREADS": str(count), "BENCH_CLOCK": "wall"}
            times.append(run(program, kernels, icd, settings)[1])
        for name, (one, _) in times[0].items():
            ratios.setdefault(name, []).append(one / times[1][name][0])
    print(f"{datetime.date.today()}, {cpu_name()}\n")
    print(f"| kernel | {threads} threads against one |\n| --- | ---: |")
    medians = {name: statistics.median(values) for name, values in ratios.items()}
    for name, ratio in medians.items():
        print(f"| {name} | {ratio:.2f} |")
    print(f"| geometric mean | {geometric_mean(medians.values()):.2f} |")


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def cpu_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), "unknown CPU")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="host threads of either platform")
    parser.add_argument("--scaling", type=int, metavar="N", help="wavesim with N threads against one")
    parser.add_argument("--no-pocl", action="store_true", help="without pocl's column")
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    args = parser.parse_args()
    if args.scaling is not None and args.scaling < 2:
        parser.error("--scaling takes a number of threads from 2 on")
    default = HERE.parents[1] / "target/release/libwavesim_opencl.so"
    library = pathlib.Path(os.environ.get("WAVESIM_OPENCL_LIBRARY", default)).resolve()
    if not library.is_file():
        parser.error(f"there is no {library}: cargo build --release -p wavesim-opencl")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program, compiler = build(folder)
        icd = folder / "wavesim.icd"
        icd.write_text(f"{library}\n")
        threads = str(args.threads)
        own = {"WAVESIM_ENGINE": os.environ.get("WAVESIM_ENGINE", "jit"), "WAVESIM_THREADS": threads}
        if args.scaling:
            print_scaling(program, args.kernels, icd, own, args.scaling)
            return
        version, times = run(program, args.kernels, icd, own)
        pocl_version, pocl = "", {}
        if not args.no_pocl:
            limit = {"POCL_MAX_PTHREAD_COUNT": threads}
            pocl_version, pocl = run(program, args.kernels, POCL, limit)
    print(f"{datetime.date.today()}, {cpu_name()}, {args.threads} thread(s); {version}; {pocl_version}; {compiler}\n")
    print("| kernel | wavesim, ms | pocl, ms | native, ms | pocl / wavesim | wavesim / native |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    ratios = []
    for name, (own, native) in times.items():
        other = pocl.get(name, (math.nan,))[0]
        native = min(native, pocl.get(name, (0, native))[1])
        ratios.append((other / own, own / native))
        print(f"| {name} | {own:.2f} | {other:.2f} | {native:.2f} | {other / own:.2f} | {own / native:.1f} |")
    means = [geometric_mean(column) for column in zip(*ratios)]
    print(f"| geometric mean | | | | {means[0]:.2f} | {means[1]:.1f} |")


if __name__ == "__main__":
    main()
