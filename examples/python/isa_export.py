"""Evaluates an integer instruction: `python3 isa_export.py isa.json V_BFE_U32 0x12345678 8 8`."""
import json
import operator as op
import sys

OPERATIONS = {
    "add": op.add, "sub": op.sub, "mul": op.mul, "and": op.and_, "or": op.or_, "xor": op.xor, "eq": op.eq, "ne": op.ne,
    "lt": op.lt, "le": op.le, "gt": op.gt, "ge": op.ge, "shl": lambda a, n: a << min(n, 128), "shr": op.rshift,
    "logical_and": lambda a, b: a and b, "logical_or": lambda a, b: a or b, "logical_not": op.not_, "not": op.invert,
    "neg": op.neg, "bits": op.pos, "convert": op.pos, "slice": op.rshift, "select": lambda c, a, b: a if c else b,
}  # fmt: skip


def number(e, names):  # an expression's; `names` has operands by their names and locals by their numbers
    kind, ty, *args = e
    if ty[0] not in "bui" or kind not in OPERATIONS and kind not in ("const", "local", "operand"):
        raise NotImplementedError(kind)
    value = int(args[0], 16) if kind == "const" else names[args[0]] if kind in ("local", "operand") else None
    value = OPERATIONS[kind](*(number(arg, names) for arg in args)) if value is None else value
    value, width = int(value) % 2 ** int(ty[1:]), int(ty[1:])
    return value - 2**width if ty[0] == "i" and value >> width - 1 else value


def run(statements, names):
    for kind, *rest in statements:
        if kind == "if":
            run(next((body for cond, body in rest[0] if number(cond, names)), rest[1]), names)
        elif kind == "assign" and rest[0][0] in ("local", "operand"):
            mask, name = 2 ** int(rest[0][1][1:]) - 1, rest[0][2]  # a narrower result keeps the rest of the register
            names[name] = names[name] & ~mask | number(rest[1], names) & mask
        else:
            raise NotImplementedError(kind)
    return names


if __name__ == "__main__":
    document, sources = json.load(open(sys.argv[1])), sys.argv[3:]
    instruction = next(i for i in document["architectures"][0]["instructions"] if i["name"] == sys.argv[2])
    names = {f"S{k}": int(text, 0) for k, text in enumerate(sources)} | dict.fromkeys([*range(99), "D0"], 0)
    print(hex(run(document["operations"][instruction["operation"]]["body"], names)["D0"]))
