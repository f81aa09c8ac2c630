# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the C++ code of a page is code that is compiled and run.

    quoted_code.py PAGE SOURCE [NAME]

A snippet is what a source has between the lines "// NAME:begin" and "// NAME:end". The page has to quote the snippet NAME word for word, without
its indentation. Without NAME the page has to quote each snippet of the source, and each C++ block of the page has to be a snippet.
"""
import pathlib
import re
import sys
import textwrap

SNIPPET = re.compile(r"^[ ]*// (\w+):begin\n(.*?)^[ ]*// \1:end$", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"^[ ]*// (\w+):(?:begin|end)$", re.MULTILINE)
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def snippets(source: str) -> dict[str, str]:
    """The snippets of a source by name."""
    found = {name: textwrap.dedent(text) for name, text in SNIPPET.findall(source)}
    marks = MARK.findall(source)
    wrong = sorted({name for name in marks if name not in found or marks.count(name) != 2})
    if wrong:
        raise ValueError(f"expected one line '// {wrong[0]}:begin' and one line '// {wrong[0]}:end' behind it")
    return found


def blocks(page: str) -> list[tuple[int, str]]:
    """The C++ blocks of a page, with the line numbers of their first lines."""
    return [(page.count("\n", 0, each.start(1)) + 1, each.group(1)) for each in BLOCK.finditer(page)]


def problems(page: str, source: str, name: str | None = None) -> list[str]:
    try:
        known = snippets(source)
    except ValueError as reason:
        return [f"SOURCE: {reason}"]
    shown = blocks(page)
    texts = [text for _, text in shown]
    asked = [name] if name else list(known)
    if not asked or any(each not in known for each in asked):
        return [f"SOURCE: expected the lines '// {name or 'NAME'}:begin' and '// {name or 'NAME'}:end'"]
    found = [f"PAGE: does not quote SOURCE from '{each}:begin' to '{each}:end' as it is; copy these lines into it"
             for each in asked if known[each] not in texts]
    if not name:
        found += [f"PAGE:{line}: is no snippet of SOURCE; take the code from there, between two marks"
                  for line, text in shown if text not in known.values()]
    return found


def main() -> int:
    if len(sys.argv) not in (3, 4):
        print(__doc__)
        return 1
    page, source = sys.argv[1:3]
    read = (pathlib.Path(each).read_text(encoding="utf-8") for each in (page, source))
    found = problems(*read, *sys.argv[3:])
    for each in found:
        print(each.replace("PAGE", page).replace("SOURCE", source))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
