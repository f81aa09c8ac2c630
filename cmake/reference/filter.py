#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints a header as Doxygen has to see it: filter.py HEADER. Lines keep their numbers.

  - A `//` comment behind a declaration describes the declaration.
  - A `///` comment above a namespace or an include describes the file.
  - A list in a `///` comment becomes a list: of promises (`///   HP-1  text`), of other terms, or of `///   - text`."""
import pathlib
import re
import sys

BEHIND = re.compile(r"^(\s*[^\s/#}].*[;,\w{]\s{2,})// (.*)$")
BEHIND_GOES_ON = re.compile(r"^(\s{8,})// (.*)$")
COMMENT = re.compile(r"^(\s*/// ?)(.*)$")
ITEM = re.compile(r"^  (?:(-) |([A-Z]{2}-\d+|\w[\w, ]*?)  +)(\S.*)$")
OF_FILE = re.compile(r"namespace\b|#include\b")
# Doxygen 1.9.4 reports an error for a specialisation that stands outside of its namespace.
HASH = re.compile(r"^template <>\nstruct std::hash<.*?^};", re.DOTALL | re.MULTILINE)


def described(lines):
    """Declarations with the comments behind them. A `///<` would go on in a `///` comment of the next declaration."""
    result, behind = [], None
    for line in lines:
        first = BEHIND.match(line)
        next_line = behind and BEHIND_GOES_ON.match(line)
        behind = first or next_line
        if next_line:
            result[-1] = result[-1].removesuffix(" */")
        result.append(f"{first[1]}/**< {first[2]} */" if first else f"{next_line[1]}{next_line[2]} */" if next_line else line)
    return result


def with_lists(block):
    """A comment, with lists in place of indented lines."""
    found, end = [], ""
    for line in block:
        start, text = COMMENT.match(line).groups()
        item = ITEM.match(text)
        if item:
            kind, mark, item_end = ("ul", "<li>", "</li>") if item[1] else ("dl", f"<dt>{item[2]}</dt><dd>", "</dd>")
            goes_on = end == f"{item_end}</{kind}>"
            found.append(start + (item_end if goes_on else f"{end}<{kind}>") + mark + item[3])
            end = f"{item_end}</{kind}>"
        elif end and text.startswith("   "):
            found.append(start + text.lstrip())
        else:
            found.append(start + end + text if end else line)
            end = ""
    if end:
        found[-1] += end
    return found


def prepared(text):
    text = HASH.sub(lambda found: "\n" * found[0].count("\n"), text)
    result, block = [], []
    for line in described(text.split("\n")):
        if COMMENT.match(line):
            block.append(line)
            continue
        if block and OF_FILE.match(line) and result[-1:] == [""]:
            result[-1] = "/// @file"
        result += with_lists(block) + [line]
        block = []
    return "\n".join(result)


if __name__ == "__main__":
    sys.stdout.write(prepared(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")))
