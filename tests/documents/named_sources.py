#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Follows the names of a page: named_sources.py ROOT PAGE. Each path in backticks is there, and in a row of a table each function in backticks
(`name()`, `desk::name()`) is defined in one of the files of that row, or in the header beside it. A function of another file that is only
called there has `->name(` or `.name(` or `= name(` before it, and is no definition."""
import pathlib
import re
import sys

PATH = re.compile(r"`((?:actors|apps|bench|devices|engine|messages|tests)/[\w./-]+)`")
FUNCTION = re.compile(r"`(?:[\w]+::)*(\w+)\(\)`")
# The line of a definition begins with its type or its class: "void desk::name(", "  int name(", "name(" of a constructor.
NO_TYPE = r"^(?!\s*(?:return|else|if|for|while|throw|co_return)\b)"
DEFINITION = NO_TYPE + r"[ ]*(?:[\w:<>,&*~ \[\]()]+[ &*])?(?:\w+::)*{name}\([^;]*$|" + NO_TYPE + r"[ ]*[\w:<>,&* ]+[ &*](?:\w+::)*{name}\([^;=]*\)[^;=]*[{{;]"


def problems(root, text):
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        sources = ""
        for path in PATH.findall(line):
            source = root / path
            if source.is_file():
                sources += source.read_text()
                beside = source.with_suffix(".hpp")
                sources += beside.read_text() if beside.is_file() else ""
            elif not source.exists():
                found.append(f"line {number}: `{path}` is not there")
        if not line.startswith("|") or not sources:
            continue
        for function in FUNCTION.findall(line):
            if not re.search(DEFINITION.format(name=function), sources, re.MULTILINE):
                found.append(f"line {number}: `{function}()` is not defined in the files of the row")
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
