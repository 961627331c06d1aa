#!/usr/bin/env python3
"""Compares what LLVM makes of one function in different ways: proofs by `wavesim prove`.

    scripts/prove-llvm.py llvm/test/CodeGen/AMDGPU --wavesim target/release/wavesim --cpu gfx1100

Takes the straight-line functions on integers from LLVM's tests, compiles each with SelectionDAG and GlobalISel, with
-O3 and -O0, and asks whether the results are equal. Where a function is undefined for some inputs, the source is
changed: flags such as `nsw` are removed, shift counts are masked, and 8 and 16-bit results are extended."""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import time

SCALAR = r"i(?:1|8|16|32|64)"
TYPE = rf"(?:{SCALAR}|<(?:2|3|4) x i(?:16|32|64)>)"
HEADER = re.compile(
    rf"^define (?:dso_local |internal |hidden )?(?:(?:signext|zeroext|noundef) )*(?P<ret>{TYPE}) "
    rf"@(?P<name>[\w.$-]+)\((?P<args>[^)]*)\)[^{{]*{{\n(?P<body>.*?)^}}",
    re.M | re.S,
)
OPERATIONS = (
    "add sub mul and or xor shl lshr ashr select icmp zext sext trunc bitcast insertelement extractelement "
    "shufflevector freeze call ret"
).split()
# One name of an intrinsic with two types cannot be in one module.
REFUSED = ("undef", "poison", "float", "half", "double", "bfloat", "ptr", "label", "call i64 @llvm.amdgcn.mul.")
INTRINSICS = re.compile(
    r"@llvm\.(?:(?:[su](?:min|max|add\.sat|sub\.sat)|fsh[lr]|bitreverse|bswap|ctpop|ctlz|cttz|abs)\.[\w.]+"
    r"|amdgcn\.(?:[us]bfe\.i32|alignbyte|perm|mul\.[iu]24(?:\.i32)?|mulhi\.[iu]24|sad\.\w+|lerp|msad\.u8|ubfe\.i\d+))\("
)


def functions(folder):
    """The functions that are straight-line code on integers: name, return type and text."""
    seen = set()
    for path in sorted(folder.rglob("*.ll")):
        text = path.read_text(errors="replace")
        for found in HEADER.finditer(text):
            function = accepted(found)
            if function is None:
                continue
            body = re.sub(r"@\w[\w.$-]*\(", "@(", function, count=1)
            if body in seen:
                continue
            seen.add(body)
            yield path.name, found["ret"], found["name"], function


def accepted(found):
    """The text of a function without undefined behaviour; None if it is not of the kind that is compared."""
    args = [arg for arg in found["args"].split(", ") if arg]
    if any(not re.match(rf"{TYPE}(?: (?:zeroext|signext|noundef))* %", arg) for arg in args) or not args:
        return None
    lines, counter = [], 0
    for line in found["body"].splitlines():
        line = line.split(";")[0].strip()
        if not line:
            continue
        if line.endswith(":") and not lines:
            continue
        if any(word in line for word in REFUSED):
            return None
        operation = line.split(" = ", 1)[-1].removeprefix("tail ").split(" ")[0]
        if operation not in OPERATIONS or operation == "call" and not INTRINSICS.search(line):
            return None
        line = re.sub(r" (?:nsw|nuw|exact|disjoint|nneg|samesign)(?= )", "", line)
        line = re.sub(r", i1 true\)", ", i1 false)", line) if re.search(r"@llvm\.(?:ctlz|cttz|abs)", line) else line
        line = re.sub(r"(?:, )?[!#]\w+(?: !\d+)?$", "", line).rstrip()
        shift = re.match(rf"(%\S+) = (shl|lshr|ashr) ({SCALAR}) (\S+), (%\S+)$", line)
        if shift:
            name, kind, ty, value, count = shift.groups()
            counter += 1
            lines.append(f"  %masked.{counter} = and {ty} {count}, {int(ty[1:]) - 1}")
            line = f"{name} = {kind} {ty} {value}, %masked.{counter}"
        elif operation in ("shl", "lshr", "ashr") and re.search(r", %\S+$", line):
            return None
        lines.append(f"  {line}")
    if not lines or not lines[-1].startswith("  ret ") or len(lines) < 2:
        return None
    extend = "zeroext " if re.fullmatch("i(?:1|8|16)", found["ret"]) else ""
    return f"define {extend}{found['ret']} @{found['name']}({found['args']}) {{\n" + "\n".join(lines) + "\n}\n"


def live(ty):
    """The registers of a result."""
    if ty.startswith("i"):
        count = 2 if ty == "i64" else 1
    else:
        length, bits = re.match(r"<(\d) x i(\d+)>", ty).groups()
        count = (int(length) + 1) // 2 if bits == "16" else int(length) * int(bits) // 32
    return ",".join(f"v{k}" for k in range(count))


def declarations(text):
    """Declarations of the intrinsics that a module calls."""
    found = {}
    for call in re.finditer(r"call ((?:<\d x )?i\d+>?) (@llvm[\w.]+)\(([^)]*)\)", text):
        types = [re.match(r"(?:<\d x i\d+>|i\d+)", arg)[0] for arg in call[3].split(", ")]
        immediate = " immarg" if re.search(r"@llvm\.(?:ctlz|cttz|abs)", call[2]) else ""
        types[-1] += immediate
        found[call[2]] = f"declare {call[1]} {call[2]}({', '.join(types)})\n"
    return "".join(found.values())


MODES = {
    "sdag-O3": ["-O3"],
    "gisel-O3": ["-O3", "-global-isel", "-global-isel-abort=1"],
    "sdag-O0": ["-O0", "-global-isel=0"],
}
PAIRS = [("sdag-O3", "gisel-O3"), ("sdag-O0", "sdag-O3")]


def compile_all(module, cpu, out):
    """Code objects by mode."""
    objects = {}
    for mode, flags in MODES.items():
        base = out / f"{cpu}-{mode}"
        done = subprocess.run(
            ["llc-19", "-march=amdgcn", f"-mcpu={cpu}", *flags, "-filetype=obj", module, "-o", f"{base}.o"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            return mode, done.stderr
        subprocess.run(["ld.lld-19", "-shared", f"{base}.o", "-o", f"{base}.co"], check=True)
        objects[mode] = f"{base}.co"
    return None, objects


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", type=pathlib.Path, help="llvm/test/CodeGen/AMDGPU of LLVM's source")
    parser.add_argument("--wavesim", default="wavesim")
    parser.add_argument("--cpu", action="append", help="gfx1100, gfx942 (repeatable)")
    names = [":".join(pair) for pair in PAIRS]
    parser.add_argument("--pair", action="append", choices=names, help="only these (repeatable)")
    parser.add_argument("--limit", type=int, default=10_000, help="at most so many functions")
    parser.add_argument("--timeout", type=int, default=20, help="seconds for each question to a solver")
    parser.add_argument("--first", type=int, default=5, help="seconds at first; what is not decided is asked again")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("llvm-proofs"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    taken = list(functions(options.tests))[: options.limit]
    print(f"{len(taken)} functions")
    renamed = {}
    for number, (file, ty, name, text) in enumerate(taken):
        symbol = f"f{number}"
        renamed[symbol] = (file, ty, name, text.replace(f"@{name}(", f"@{symbol}(", 1))
    for cpu in options.cpu or ["gfx1100", "gfx942"]:
        usable = usable_functions(renamed, cpu, options.output)
        text = "".join(renamed[symbol][3] for symbol in usable)
        module = options.output / f"{cpu}.ll"
        module.write_text(text + declarations(text))
        failed, objects = compile_all(str(module), cpu, options.output)
        if failed:
            print(f"{cpu}: {failed}: {objects}")
            continue
        compare(renamed, usable, objects, cpu, options)


def usable_functions(renamed, cpu, out):
    """The functions that both instruction selectors can compile: bisects a module that they cannot."""

    def works(symbols):
        text = "".join(renamed[symbol][3] for symbol in symbols)
        module = out / "try.ll"
        module.write_text(text + declarations(text))
        return compile_all(str(module), cpu, out)[0] is None

    def rest(symbols):
        if works(symbols):
            return symbols
        if len(symbols) == 1:
            return []
        middle = len(symbols) // 2
        return rest(symbols[:middle]) + rest(symbols[middle:])

    return rest(list(renamed))


def compare(renamed, usable, objects, cpu, options):
    def prove(question):
        answer = asked(question, min(options.first, options.timeout))
        return answer if not answer[3].startswith("unknown") else asked(question, options.timeout)

    def asked(question, limit):
        symbol, (a, b) = question
        start = time.monotonic()
        command = [options.wavesim, "prove", objects[a], objects[b], "--symbol", symbol, "--json"]
        command += ["--live", live(renamed[symbol][1]), "--timeout", str(limit)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=10 + 6 * limit)
            answer = json.loads(done.stdout or "{}")
            verdict = answer.get("verdict", "error: " + done.stderr.strip()[:200])
            if verdict == "unknown":
                verdict = "unknown: " + str(answer.get("reason", ""))[:200]
        except subprocess.TimeoutExpired:
            verdict = "unknown: time"
        return symbol, a, b, verdict, time.monotonic() - start

    pairs = [pair for pair in PAIRS if not options.pair or ":".join(pair) in options.pair]
    questions = [(symbol, pair) for pair in pairs for symbol in usable]
    answers = []
    log = options.output / f"{cpu}.txt"
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, log.open("w") as file:
        for answer in pool.map(prove, questions):
            answers.append(answer)
            symbol, a, b, verdict, seconds = answer
            source, _, name, _ = renamed[symbol]
            print(f"{symbol}\t{source}:{name}\t{a}\t{b}\t{seconds:.1f}\t{verdict}", file=file, flush=True)
    for pair in pairs:
        counts = collections.Counter(v.split(":")[0] for _, a, b, v, _ in answers if (a, b) == pair)
        total = sum(counts.values())
        decided = total - counts["unknown"] - counts["error"]
        print(f"{cpu} {pair[0]} {pair[1]}: {total} functions, {decided} decided, {dict(counts)}; {log}")


if __name__ == "__main__":
    main()
