"""Compares isa_export.py with conformance vectors.

    wavesim isa export --arch rdna3 -o isa.json
    python3 isa_vectors.py isa.json tests/filetests/vectors/rdna3/vop3.jsonl.gz
"""
import gzip
import json
import re
import sys

from isa_export import run


def main(path, vectors):
    document = json.load(open(path))
    instructions = {i["name"]: i["operation"] for i in document["architectures"][0]["instructions"]}
    compared, skipped = 0, 0
    for record in map(json.loads, gzip.open(vectors, "rt")):
        # Instructions on plain VGPRs: the first operand is the result.
        match = re.fullmatch(r"(\w+?)(?:_e32|_e64)? v(\d+), v(\d+), v(\d+)(?:, v(\d+))?", record["asm"] or "")
        if not match or record["exec"] not in ("ffffffff", "ffffffffffffffff"):
            continue
        name, result, *sources = match.groups()
        lane = lambda registers, number, at: int(registers[number][8 * at : 8 * at + 8], 16)
        try:
            body = document["operations"][instructions[name.upper()]]["body"]
            for at in range(record["wave"]):
                names = {f"S{k}": lane(record["vgpr_in"], n, at) for k, n in enumerate(sources) if n}
                names |= dict.fromkeys(range(99), 0)
                names["D0"] = lane(record["vgpr_in"], result, at) if result in record["vgpr_in"] else 0
                value, expected = run(body, names)["D0"], lane(record["vgpr_out"], result, at)
                assert value == expected, f"{record['id']}, lane {at}: {value:x} instead of {expected:x}"
            compared += 1
        except (NotImplementedError, KeyError):
            skipped += 1
    print(f"{compared} records agree, {skipped} are not about integers alone")


main(*sys.argv[1:])
