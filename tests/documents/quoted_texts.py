# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the texts which a page says the program prints are in its sources.

    quoted_texts.py PAGE SOURCE_FOLDER...

In a table whose first column is called "text", each cell of that column has a text in backticks. "…" stands for anything. The parts
between are looked for in the string literals of the sources; literals that follow each other are one text.

Each line of the log from the level "info" on also has to be in a table: all parts of one text are string literals of the statement
that logs the line. A statement without literals is left out.
"""
import pathlib
import re
import sys


def quoted_texts(page: str) -> list[tuple[int, str]]:
    """The texts of the tables, with their line numbers."""
    result = []
    in_table = False
    for number, line in enumerate(page.splitlines(), 1):
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|"):
            in_table = False
        elif cells[1] == "text":
            in_table = True
        elif in_table and not cells[1].startswith("---"):
            quoted = re.fullmatch(r"`(.+)`", cells[1])
            result.append((number, quoted.group(1) if quoted else ""))
    return result


def sources(folders: list[str]) -> dict[pathlib.Path, str]:
    """The texts of the sources. Literals that follow each other are joined."""
    paths = [path for folder in folders for path in sorted(pathlib.Path(folder).rglob("*.[ch]pp"))]
    return {path: re.sub(r'"\s*\n\s*"', "", path.read_text(encoding="utf-8")) for path in paths}


def literals(code: str) -> str:
    """All string literals of the code, one in a line."""
    return "\n".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', code))


def logged_lines(code: str) -> list[str]:
    """The string literals of each statement that logs a line, without the name of the room."""
    statements = re.findall(r'\blog_?(?:\(\))?\.(?:info|warn|error)\(\s*"\w+",(.*?);\n', code, re.DOTALL)
    return [found for found in map(literals, statements) if found]


def missing_parts(text: str, known: str) -> list[str]:
    parts = [part for part in (each.strip(" ") for each in text.split("…")) if part]
    return [part for part in parts if part not in known]


def main() -> int:
    page, *folders = sys.argv[1:]
    texts = quoted_texts(pathlib.Path(page).read_text(encoding="utf-8"))
    code = sources(folders)
    known = literals("\n".join(code.values()))
    wrong = 0
    if not texts:
        print(f"{page}: expected a table whose first column is called 'text', got none")
        return 1
    for number, text in texts:
        if not text:
            print(f"{page}:{number}: expected a text in backticks in the first column")
            wrong += 1
        for part in missing_parts(text, known):
            print(f"{page}:{number}: no string of {' '.join(folders)} has '{part}'; mend the page or the program")
            wrong += 1
    for path, text in code.items():
        for line in logged_lines(text):
            if all(missing_parts(each, line) for _, each in texts):
                shown = line.replace("\n", "…")
                print(f"{page}: expected a text of the log line '{shown}' of {path}; add a row")
                wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
