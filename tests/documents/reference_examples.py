# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the code in the comments of headers is code that tests compile and run.

    reference_examples.py --headers HEADER... --sources SOURCE...

Code is a block that is marked as cpp, and a text in backticks with parentheses, braces or a semicolon, but not a function with names of its
arguments. One of the sources has the code word for word; blanks and ends of lines may differ, and "..." stands for any text.
"""
import argparse
import pathlib
import re
import sys

COMMENT = re.compile(r"(?:^[ ]*///.*\n)+|(?<=[;,{\w])  +//.*\n", re.MULTILINE)
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`]+)`")
CODE = re.compile(r"(?!\w+\([\w, ]*\)$).*[({;]")


def examples(header: str) -> list[str]:
    """The code in the comments of a header."""
    found = []
    for comment in COMMENT.findall(header):
        text = re.sub(r"^[ ]*//[/]? ?", "", comment, flags=re.MULTILINE)
        found += BLOCK.findall(text) + [each for each in SPAN.findall(BLOCK.sub("", text).replace("\n", " ")) if CODE.match(each)]
    return found


def missing(headers: dict[str, str], sources: list[str]) -> list[str]:
    known = [" ".join(each.split()) for each in sources]
    found, count = [], 0
    for name, header in headers.items():
        for example in examples(header):
            count += 1
            text = " ".join(example.split())
            pattern = ".*?".join(re.escape(each) for each in text.split("..."))
            if not any(re.search(pattern, each) for each in known):
                found.append(f"{name}: no source has the code '{text}'; add it to one, or mend the comment")
    return found if count else ["expected code in the comments of the headers, found none"]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--headers", nargs="+", type=pathlib.Path, required=True)
    options.add_argument("--sources", nargs="+", type=pathlib.Path, required=True)
    given = options.parse_args()
    found = missing({str(each): each.read_text(encoding="utf-8") for each in given.headers},
                    [each.read_text(encoding="utf-8") for each in given.sources])
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
