#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Follows the names of a page: named_places.py ROOT PAGE. Each path in backticks is there, and in a row of a table each function in backticks
(`name()`) is in one of the files of that row."""
import pathlib
import re
import sys

PATH = re.compile(r"`((?:actors|apps|bench|devices|engine|messages|tests)/[\w./-]+)`")
FUNCTION = re.compile(r"`(?:[\w]+::)*(\w+)\(\)`")


def problems(root, text):
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        sources = ""
        for path in PATH.findall(line):
            place = root / path
            if place.is_file():
                sources += place.read_text()
            elif not place.exists():
                found.append(f"line {number}: `{path}` is not there")
        if not line.startswith("|") or not sources:
            continue
        for function in FUNCTION.findall(line):
            if not re.search(rf"\b{function}\(", sources):
                found.append(f"line {number}: no `{function}()` in the files of the row")
    if not found and not PATH.search(text):
        found.append("the page names no file")
    return found


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, page = pathlib.Path(sys.argv[1]), sys.argv[2]
    found = problems(root, (root / page).read_text())
    for each in found:
        print(f"{page}: {each}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
