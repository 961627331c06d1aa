#!/usr/bin/env python3
"""Runs hashcat's hash modes on the first OpenCL device: the self-test of each, then its example hash with the password.

usage: scripts/hashcat-modes.py [--cpu-seconds N] [--every N] [--seconds N] [MODE...]

Without modes, all of them; with --every N, each N-th of them. A mode that takes more than N (default 120) seconds of
hashcat's own CPU time, without the compiler's, is stopped, as is one that ends in no half an hour. No mode begins after
--seconds. Prints a line for each mode: its result, number, name and CPU seconds with the compiler's, then the sums. The
status is 1 if a mode has failed.
"""

import argparse
import collections
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

HASHCAT = "/usr/bin/hashcat"
WALL_SECONDS = 1800


def modes():
    """Returns what hashcat says about all modes, by number."""
    text = subprocess.run(
        [HASHCAT, "--hash-info", "--machine-readable"], capture_output=True, text=True, check=True
    ).stdout
    return json.loads(text[text.index("{"):])


def run(mode, info, cpu_seconds, folder):
    """Returns the result of a mode, and the reason if it is no success."""
    example, password = info.get("example_hash"), info.get("example_pass")
    if not example or password is None:
        return "skipped", "it has no example"
    hashes, words = os.path.join(folder, "hash"), os.path.join(folder, "words")
    with open(words, "wb") as file:
        hexadecimal = info.get("example_pass_format") == "hex"
        file.write((b"$HEX[%s]" % password.encode() if hexadecimal else password.encode()) + b"\n")
    if info["example_hash_format"].startswith("hex-encoded"):
        with open(hashes, "wb") as file:
            file.write(bytes.fromhex(example))
    else:
        with open(hashes, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(example + "\n")
    command = [HASHCAT, "--force", "--potfile-disable", "--restore-disable", "--logfile-disable", "--quiet"]
    command += ["--deprecated-check-disable", "--backend-ignore-cuda"]
    # The library of HIP may be there, too; hashcat would prefer it.
    command += ["--backend-ignore-hip"]
    command += ["--session", f"mode{mode}", "-a", "0", "-m", mode, hashes, words]

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))

    try:
        done = subprocess.run(
            command, capture_output=True, timeout=WALL_SECONDS, preexec_fn=limit, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return "stopped", f"{WALL_SECONDS} s"
    text = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "stopped", f"{cpu_seconds} s of CPU time"
    if done.returncode == 0 and "self-test failed" not in text.lower():
        return "passed", ""
    lines = [line for line in text.splitlines() if re.search("error|fail|wavesim|unsupp|skipp|exhaust", line, re.I)]
    return "failed", f"status {done.returncode}: " + " | ".join(lines or text.splitlines())[:400]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu-seconds", type=int, default=120)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("modes", nargs="*")
    arguments = parser.parse_args()
    known = modes()
    selected = arguments.modes or sorted(known, key=int)[:: arguments.every]
    counts = collections.Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for mode in selected:
            if time.monotonic() - started > arguments.seconds:
                break
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            result, reason = run(mode, known[mode], arguments.cpu_seconds, folder)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            counts[result] += 1
            print(f"{result.upper()} {mode} {known[mode]['name'][:50]} {seconds:.1f} s {reason}", flush=True)
    names = ("passed", "failed", "stopped", "skipped")
    print(", ".join(f"{counts[name]} {name}" for name in names) + f" in {time.monotonic() - started:.0f} s")
    sys.exit(counts["failed"] > 0)


if __name__ == "__main__":
    main()
