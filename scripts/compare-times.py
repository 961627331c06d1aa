#!/usr/bin/env python3
"""Compares predicted times of HIP benchmarks with times that were measured on an MI300A.

The benchmarks are those of https://github.com/sarchlab/mgpusim, folder gpu_perf_scripts, at commit d01e70d5, which
also has the measured times (mi300a.csv). Neither is part of this repository:

    git clone https://github.com/sarchlab/mgpusim && git -C mgpusim checkout d01e70d5
    scripts/compare-times.py mgpusim/gpu_perf_scripts --library target/release --rocm ROCM --device-libs BITCODE

docs/hip.md says where the headers and the device libraries come from. The kernels of CALIBRATION may be used to choose
constants of the model; the errors of the others are reported apart.

Launches run only the workgroups that predictions need (WAVESIM_TIMING_ONLY), except in kernels whose launches depend on
results of earlier ones. Predictions are kept in a file by the contents of the library and of the device's constants: a
run that is interrupted resumes, and --report prints the tables without a run.
"""

import argparse
import csv
import hashlib
import json
import os
import resource
import subprocess
import sys
import threading
import time

CALIBRATION = ["vectoradd", "memcopy_d2d", "matrixtranspose", "matrixmultiplication", "fir", "bicg", "stencil2d",
               "bitonicsort", "kmeans", "pagerank", "nw", "im2col"]
EVALUATION = ["relu", "atax", "fastwalshtransform", "fft1D_512", "bfs", "spmv_csr_scalar", "floydwarshall", "nbody",
              "conv2d", "simpleconvolution"]
# What a launch writes decides about the launches that follow: all workgroups run.
DEPENDENT = ["bfs"]
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


def watch(process, limit, over):
    """Ends a process that has more than `limit` bytes resident."""
    page = resource.getpagesize()
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/statm") as file:
                if int(file.read().split()[1]) * page > limit:
                    over.append(True)
                    process.kill()
        except (OSError, ValueError, IndexError):
            pass
        time.sleep(0.2)


def predict(args, program, kernel, options):
    """Returns the predicted milliseconds and the seconds of CPU, or the reason why there are none."""
    env = dict(os.environ, LD_LIBRARY_PATH=args.library, WAVESIM_TIMING=args.device, WAVESIM_MEMORY="64G")
    if kernel not in DEPENDENT and not args.whole:
        env["WAVESIM_TIMING_ONLY"] = "1"
    seconds = int(args.cpu) + 1
    limits = lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen([program, "--iterations", "1"] + options, env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, preexec_fn=limits)
    over = []
    watcher = threading.Thread(target=watch, args=(process, args.memory * 2**30, over))
    watcher.start()
    out, err = process.communicate()
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for row in out.splitlines():
        fields = row.split(",")
        if len(fields) == 6 and fields[0] == kernel:
            return float(fields[3]), cpu, None
    if over:
        return None, cpu, f"more than {args.memory:g} GB"
    if cpu > args.cpu:
        return None, cpu, f"more than {args.cpu:g} s of CPU"
    lines = (err or out).strip().splitlines() or [f"status {process.returncode}"]
    return None, cpu, "failed: " + lines[-1][-100:]


def identity(args):
    """Returns what predictions depend on: the library, and the device with its file."""
    digest = hashlib.sha256()
    files = [os.path.join(args.library, "libamdhip64.so")]
    name = args.device.split(",")[0]
    files += [name] if name.endswith(".toml") else []
    for path in files:
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:16] + " " + args.device + (" whole" if args.whole else "")


def read_results(path):
    """Returns the kept results by kernel, index of the row, and identity. The last line may be incomplete."""
    results = {}
    if os.path.exists(path):
        for line in open(path):
            try:
                one = json.loads(line)
                results[one["kernel"], one["index"], one["of"]] = one
            except (ValueError, KeyError):
                continue
    return results


def weighted(rows, key="measured"):
    return 100 * sum(abs(r["predicted"] - r[key]) for r in rows) / sum(r[key] for r in rows)


def report(title, rows):
    """Prints by kernel and for all: points, compared ones, the weighted mean absolute percentage error, the same without
    the slowest of the measured runs of a point, the mean of the points' errors, and the most seconds of CPU."""
    rows = [row for row in rows if row["measured"] >= LEAST_MS]
    if not rows:
        return
    print(f"\n{title}\n\n| kernel | points | compared | weighted error | without slowest runs | mean error | "
          "bias | most CPU |")
    print("|---|---|---|---|---|---|---|---|")
    for kernel in sorted({row["kernel"] for row in rows}) + [None]:
        own = [row for row in rows if kernel in (None, row["kernel"])]
        have = [row for row in own if row["predicted"] is not None]
        print(f"| {kernel or '**all**'} | {len(own)} | {len(have)} | ", end="")
        if have:
            mean = 100 * sum(abs(r["predicted"] / r["measured"] - 1) for r in have) / len(have)
            bias = 100 * (sum(r["predicted"] for r in have) / sum(r["measured"] for r in have) - 1)
            print(f"{weighted(have):.1f} % | {weighted(have, 'typical'):.1f} % | {mean:.1f} % | {bias:+.1f} % | "
                  f"{max(r['cpu'] for r in have):.0f} s |")
        else:
            print("| | | | |")


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
    parser.add_argument("--results", help="the file of the kept predictions [default: results.jsonl of --programs]")
    parser.add_argument("--kernel", action="append", help="only this one; may be repeated")
    parser.add_argument("--calibration", action="store_true", help="only kernels that may be used for calibration")
    parser.add_argument("--whole", action="store_true", help="run all workgroups")
    parser.add_argument("--cpu", type=float, default=60, help="seconds of CPU of a point")
    parser.add_argument("--memory", type=float, default=20, help="GB of memory of a point")
    parser.add_argument("--limit", type=int, help="at most so many new predictions")
    parser.add_argument("--most-ms", type=float, default=1e9, help="skip points that take longer on the GPU")
    parser.add_argument("--every", type=int, default=1, help="only every N-th size of a kernel")
    parser.add_argument("--report", action="store_true", help="run nothing")
    args = parser.parse_args()
    args.library = os.path.abspath(args.library)
    os.makedirs(args.programs, exist_ok=True)
    table = args.times or os.path.join(args.sources, "mi300a.csv")
    path = args.results or os.path.join(args.programs, "results.jsonl")
    chosen = args.kernel or CALIBRATION + ([] if args.calibration else EVALUATION)
    results, of = read_results(path), identity(args)
    rows, counts, new = [], {}, 0
    for row in csv.DictReader(open(table)):
        kernel, size, measured = row["kernel_name"], row["problem_size"], float(row["avg_ms"])
        index = counts[kernel] = counts.get(kernel, -1) + 1
        options = arguments(kernel, size, index) if kernel in chosen else None
        if options is None or index % args.every != 0 or measured > args.most_ms:
            continue
        kept = results.get((kernel, index, of))
        if kept is None and not args.report and (args.limit is None or new < args.limit):
            program = os.path.join(args.programs, PROGRAMS.get(kernel, kernel))
            build(args, os.path.basename(program), program)
            predicted, cpu, why = predict(args, program, kernel, options)
            kept = {"kernel": kernel, "index": index, "size": size, "of": of, "predicted": predicted, "cpu": cpu,
                    "why": why}
            with open(path, "a") as file:
                file.write(json.dumps(kept) + "\n")
            new += 1
        kept = kept or {"predicted": None, "cpu": 0, "why": "not run"}
        # One run in which something else kept the GPU decides about the average of a few points.
        runs = int(row["iterations"])
        typical = (measured * runs - float(row["max_ms"])) / (runs - 1) if runs > 2 else measured
        rows.append({"kernel": kernel, "measured": measured, "typical": typical, "predicted": kept["predicted"],
                     "cpu": kept["cpu"]})
        if kept["predicted"] is None:
            print(f"{kernel:24} {size:28} {measured:10.4f}  {kept['why']}", flush=True)
            continue
        change = 100 * (kept["predicted"] - measured) / measured
        print(f"{kernel:24} {size:28} {measured:10.4f} {kept['predicted']:10.4f} ms {change:+7.1f}%  {kept['cpu']:5.1f} s",
              flush=True)
    report("Calibration kernels", [row for row in rows if row["kernel"] in CALIBRATION])
    report("Evaluation kernels", [row for row in rows if row["kernel"] in EVALUATION])
    return 0 if any(row["predicted"] is not None for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
