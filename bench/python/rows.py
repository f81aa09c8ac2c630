# SPDX-License-Identifier: BSD-3-Clause
"""Rows of Python's benchmarks, in the form that docs/benchmarks.md describes."""
import argparse
import json
import pathlib
import statistics

ROUNDS = 36, 0.1  # how many, and the seconds of each: short, because the speed of a machine may change within a second


def options(description, known, add_more=lambda parser: None):
    """The arguments of a program that measures the rows `known`. `--only` may name rows of other programs too."""
    parser = argparse.ArgumentParser(description=description)
    add_more(parser)
    parser.add_argument("--only", nargs="*", default=list(known), help="of the rows " + ", ".join(known) + " (default: all)")
    parser.add_argument("--quick", action="store_true", help="for a moment, to see that all works")
    parser.add_argument("--out", default="out/bench/python.json", help="the file to which the rows are added")
    given = parser.parse_args()
    given.only = [each for each in given.only if each in known]
    return given


def middle_half(values):
    low, _, high = statistics.quantiles(values, n=4)
    return [low, high]


def row(name, text, bar, ours, theirs, unit="us", peer="PyTorch", at_least=True):
    """Compares two lists of seconds, one entry a round; the two sides of a round ran in turns."""
    scale = {"us": 1e6, "ms": 1e3, "s": 1}[unit]
    ratios = [their / our for our, their in zip(ours, theirs)]
    ratio = statistics.median(ratios)
    return {"name": name, "text": text, "unit": unit, "peer": statistics.median(theirs) * scale, "troupe": statistics.median(ours) * scale,
            "floor": None, "ratio": ratio, "at_least" if at_least else "at_most": bar, "ok": (ratio >= bar) == at_least,
            "peer_name": peer, "spread": {"peer": middle_half([each * scale for each in theirs]),
                                          "troupe": middle_half([each * scale for each in ours]), "ratio": middle_half(ratios)}}


def write(rows, file):
    """Adds rows to a file, in the place of earlier ones of the same names, and prints them."""
    for each in rows:
        bar = f">= {each['at_least']}" if "at_least" in each else f"<= {each['at_most']}"
        print(f"{each['name']:<22} {each['unit']:<4} {each['peer_name']} {each['peer']:10.2f}  troupe {each['troupe']:10.2f}  ratio "
              f"{each['ratio']:5.2f}  {bar}{'' if each['ok'] else '  short'}", flush=True)
    path = pathlib.Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    names = {each["name"] for each in rows}
    known = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps([each for each in known if each["name"] not in names] + rows, indent=1) + "\n")
