#!/usr/bin/env python3
"""Compares predicted times of HIP benchmarks with times that were measured on an MI300A.

The benchmarks are those of https://github.com/sarchlab/mgpusim, folder gpu_perf_scripts, at commit d01e70d5, which
also has the measured times (mi300a.csv). Neither is part of this repository:

    git clone https://github.com/sarchlab/mgpusim && git -C mgpusim checkout d01e70d5
    scripts/compare-times.py mgpusim/gpu_perf_scripts --library target/release --rocm ROCM --device-libs BITCODE

docs/hip.md says where the headers and the device libraries come from. The kernels of CALIBRATION may be used to choose
constants of the model; the errors of the others are reported apart.
"""

import argparse
import csv
import os
import subprocess
import sys
import time

CALIBRATION = ["vectoradd", "memcopy_d2d", "matrixtranspose", "matrixmultiplication", "fir", "bicg", "stencil2d",
               "bitonicsort", "kmeans", "pagerank", "nw", "im2col"]
EVALUATION = ["relu", "atax", "fastwalshtransform", "fft1D_512", "bfs", "spmv_csr_scalar", "floydwarshall", "nbody",
              "conv2d", "simpleconvolution"]
# Shorter ones have errors of the timer.
LEAST_MS = 0.01
PROGRAMS = {"memcopy_d2d": "memcopy", "fft1D_512": "fft", "spmv_csr_scalar": "spmv"}


def arguments(kernel, size, index):
    """Returns the arguments of a program for a problem size, the index-th of the kernel in the table."""
    first = size.split("_")[0]
    number = "".join(c for c in first.split("x")[0] if c.isdigit())
    part = lambda name: next(p[len(name):] for p in size.split("_") if p.startswith(name))
    match kernel:
        case "vectoradd" | "relu" | "matrixtranspose" | "stencil2d" | "bitonicsort" | "atax" | "bicg" | "memcopy_d2d" \
                | "matrixmultiplication" | "fastwalshtransform" | "nw":
            return ["--size", number]
        case "fft1D_512":
            return ["--size", size.split("_")[0].lstrip("Nn=")]
        case "floydwarshall":
            return ["--nodes", number]
        case "pagerank":
            return ["--nodes", part("nodes")]
        case "nbody":
            return ["--bodies", number]
        case "fir":
            return ["--length", first, "--taps", part("taps")]
        case "kmeans":
            return ["--points", part("pts"), "--features", part("feat")]
        case "im2col" | "conv2d":
            return ["--size", size.split("_")[2].split("x")[0], "--mask", part("k").split("x")[0]]
        case "simpleconvolution":
            return ["--size", number, "--mask", part("mask")]
        case "spmv_csr_scalar":
            return ["--rows", number, "--nnz", str(int(part("nnz")) // int(number))]
        case "bfs":
            # The rows of a size have these degrees in order.
            return ["--nodes", number, "--degree", str([4, 8, 16, 32][index % 4])]
        case _:
            return None


def build(args, name, out):
    source = os.path.join(args.sources, name + ".cpp")
    if os.path.exists(out) and os.path.getmtime(out) > os.path.getmtime(source):
        return
    command = [args.clang, "-x", "hip", "--offload-arch=gfx942", "-O2", "-std=c++17", "-w",
               "--rocm-path=" + args.rocm, "--rocm-device-lib-path=" + args.device_libs,
               "-I", os.path.join(args.rocm, "include"), "-c", source, "-o", out + ".o"]
    subprocess.run(command, check=True)
    subprocess.run(["c++", out + ".o", "-L", args.library, "-l:libamdhip64.so", "-lm", "-o", out], check=True)


def predict(args, program, kernel, options):
    env = dict(os.environ, LD_LIBRARY_PATH=args.library, WAVESIM_TIMING=args.device, WAVESIM_MEMORY="64G")
    run = subprocess.run([program, "--iterations", "1"] + options, env=env, capture_output=True, text=True,
                         timeout=args.timeout)
    for row in run.stdout.splitlines():
        fields = row.split(",")
        if len(fields) == 6 and fields[0] == kernel:
            return float(fields[3])
    raise RuntimeError((run.stderr or run.stdout).strip().splitlines()[-1:])


def report(title, rows):
    """Prints the weighted mean absolute percentage error by kernel, and that of all."""
    if not rows:
        return
    print(f"\n{title}\n{'kernel':24} {'points':>6} {'error':>8}")
    weighted = lambda rows: 100 * sum(abs(p - m) for _, _, m, p in rows) / sum(m for _, _, m, _ in rows)
    rows = [row for row in rows if row[2] >= LEAST_MS]
    for kernel in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == kernel]
        print(f"{kernel:24} {len(own):6} {weighted(own):7.1f}%")
    if rows:
        print(f"{'all':24} {len(rows):6} {weighted(rows):7.1f}%")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", help="the folder gpu_perf_scripts")
    parser.add_argument("--times", help="the measured times [default: mi300a.csv of the sources]")
    parser.add_argument("--library", required=True, help="the folder of wavesim's libamdhip64.so")
    parser.add_argument("--rocm", required=True, help="the folder whose include directory has HIP's headers")
    parser.add_argument("--device-libs", required=True, help="the folder of ROCm's device libraries")
    parser.add_argument("--device", default="mi300a", help="the device, or a file of costs")
    parser.add_argument("--clang", default="clang-19")
    parser.add_argument("--programs", default="/tmp/wavesim-times", help="the folder of the compiled programs")
    parser.add_argument("--kernels", nargs="*", help="only these")
    parser.add_argument("--calibration", action="store_true", help="only kernels that may be used for calibration")
    parser.add_argument("--timeout", type=float, default=60, help="seconds of a point")
    parser.add_argument("--most-ms", type=float, default=1e9, help="skip points that take longer on the GPU")
    parser.add_argument("--every", type=int, default=1, help="only every N-th size of a kernel")
    args = parser.parse_args()
    args.library = os.path.abspath(args.library)
    os.makedirs(args.programs, exist_ok=True)
    table = args.times or os.path.join(args.sources, "mi300a.csv")
    chosen = args.kernels or CALIBRATION + ([] if args.calibration else EVALUATION)
    rows, counts = [], {}
    for row in csv.DictReader(open(table)):
        kernel, size, measured = row["kernel_name"], row["problem_size"], float(row["avg_ms"])
        counts[kernel] = counts.get(kernel, -1) + 1
        options = arguments(kernel, size, counts[kernel]) if kernel in chosen else None
        if options is None or counts[kernel] % args.every != 0 or measured > args.most_ms:
            continue
        program = os.path.join(args.programs, PROGRAMS.get(kernel, kernel))
        start = time.time()
        try:
            build(args, os.path.basename(program), program)
            predicted = predict(args, program, kernel, options)
        except (subprocess.TimeoutExpired, RuntimeError, subprocess.CalledProcessError, OSError) as error:
            print(f"{kernel:24} {size:28} {measured:10.4f}  failed: {str(error)[-80:]}", flush=True)
            continue
        change = 100 * (predicted - measured) / measured
        print(f"{kernel:24} {size:28} {measured:10.4f} {predicted:10.4f} ms {change:+7.1f}%  {time.time() - start:5.1f} s",
              flush=True)
        rows.append((kernel, size, measured, predicted))
    report("calibration kernels", [row for row in rows if row[0] in CALIBRATION])
    report("evaluation kernels", [row for row in rows if row[0] in EVALUATION])
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
