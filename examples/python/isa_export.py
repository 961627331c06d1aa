"""Evaluates integer instructions from `wavesim isa export`, without wavesim.

    wavesim isa export --arch rdna3 -o isa.json
    python3 isa_export.py isa.json V_BFE_U32 0x12345678 8 8
    python3 isa_export.py isa.json --vectors vop3.jsonl.gz
"""
import gzip
import json
import re
import sys


def width(ty):
    return {"f64": 64, "f32": 32}.get(ty) or int(ty[1:]) if ty[0] in "buif" else 8


def signed(value, ty):
    return value - (1 << width(ty)) if ty[0] == "i" and value >> (width(ty) - 1) else value


class Body:
    """One body with its operands: a name such as S0, to a number."""

    def __init__(self, operation, operands):
        self.operands, self.locals = operands, [0] * len(operation["locals"])
        self.run(operation["body"])

    def run(self, statements):
        for kind, *rest in statements:
            if kind == "assign":
                self.assign(rest[0], self.value(rest[1]))
            elif kind == "if":
                taken = next((body for cond, body in rest[0] if self.value(cond)), rest[1])
                self.run(taken)
            elif kind == "for":
                for i in range(self.value(rest[1]), self.value(rest[2]) + 1):
                    self.locals[rest[0]] = i
                    self.run(rest[3])
            else:
                raise NotImplementedError(kind)

    def assign(self, place, value):
        kind, ty, *rest = place
        if kind == "local":
            self.locals[rest[0]] = value & (1 << width(ty)) - 1
        elif kind == "operand":
            # A narrower result keeps the rest of the register.
            mask = (1 << width(ty)) - 1
            self.operands[rest[0]] = self.operands.get(rest[0], 0) & ~mask | value & mask
        elif kind == "slice":
            lo, mask = self.value(rest[1]), (1 << width(ty)) - 1
            self.assign(rest[0], self.value(rest[0]) & ~(mask << lo) | (value & mask) << lo)
        else:
            raise NotImplementedError(kind)

    def value(self, e):
        kind, ty, *rest = e
        return self.one(kind, ty, rest) & (1 << width(ty)) - 1

    def one(self, kind, ty, rest):
        if kind == "const":
            return int(rest[0], 16)
        if kind == "local":
            return self.locals[rest[0]]
        if kind == "operand":
            return self.operands[rest[0]]
        if kind == "slice":
            return self.value(rest[0]) >> self.value(rest[1])
        if kind == "select":
            return self.value(rest[1] if self.value(rest[0]) else rest[2])
        if kind in ("bits", "convert"):
            value = self.value(rest[0])
            return signed(value, rest[0][1]) if kind == "convert" else value
        if kind in ("call", "concat", "field", "state") or "f" in ty:
            raise NotImplementedError(kind)
        a = self.value(rest[0])
        if kind in ("not", "neg", "logical_not"):
            return {"not": ~a, "neg": -a, "logical_not": int(a == 0)}[kind]
        b, left = self.value(rest[1]), rest[0][1]
        if "f" in left:
            raise NotImplementedError(kind)
        if kind in ("shl", "shr"):
            a = signed(a, left)
            return (a << b if b < width(left) else 0) if kind == "shl" else a >> min(b, 127)
        x, y = signed(a, left), signed(b, left)
        operators = {
            "add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y,
            "and": lambda: a & b, "or": lambda: a | b, "xor": lambda: a ^ b,
            "eq": lambda: x == y, "ne": lambda: x != y, "lt": lambda: x < y, "le": lambda: x <= y,
            "gt": lambda: x > y, "ge": lambda: x >= y,
            "logical_and": lambda: a and b, "logical_or": lambda: a or b,
        }  # fmt: skip
        if kind not in operators:
            raise NotImplementedError(kind)
        return int(operators[kind]())


def main(path, *words):
    document = json.load(open(path))
    instructions = {i["name"]: i for i in document["architectures"][0]["instructions"]}
    evaluate = lambda name, operands: Body(document["operations"][instructions[name]["operation"]], operands).operands["D0"]
    if words[0] != "--vectors":
        operands = {f"S{at}": int(word, 0) for at, word in enumerate(words[1:])}
        print(hex(evaluate(words[0], operands | {"D0": 0})))
        return
    compared, skipped = 0, 0
    for record in map(json.loads, gzip.open(words[1], "rt")):
        # Instructions on plain VGPRs: the first operand is the result.
        match = re.fullmatch(r"(\w+?)(?:_e32|_e64)? v(\d+), v(\d+), v(\d+)(?:, v(\d+))?", record["asm"] or "")
        if not match or record["exec"] not in ("ffffffff", "ffffffffffffffff"):
            continue
        name, result, *sources = match.groups()
        lane = lambda registers, number, at: int(registers[number][8 * at : 8 * at + 8], 16)
        try:
            for at in range(record["wave"]):
                operands = {f"S{k}": lane(record["vgpr_in"], n, at) for k, n in enumerate(sources) if n}
                operands["D0"] = lane(record["vgpr_in"], result, at) if result in record["vgpr_in"] else 0
                value, expected = evaluate(name.upper(), operands), lane(record["vgpr_out"], result, at)
                assert value == expected, f"{record['id']}, lane {at}: {value:x} instead of {expected:x}"
            compared += 1
        except (NotImplementedError, KeyError):
            skipped += 1
    print(f"{compared} records agree, {skipped} are not about integers alone")


main(*sys.argv[1:])
