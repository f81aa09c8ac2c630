#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands that a document's `console` blocks show, and compares what they print with what the block shows.

In a block, a line that begins with `$ ` is a command; the lines up to the next command are what it prints:
  - a line `...` stands for any lines, also none; `...` within a line for any text;
  - a number stands for any number (also 1,234.5 and 1:42), and the word after it for one or several (2 threads, 1 thread);
  - how many blanks stand between two words does not matter.
A command runs in the document's folder and has to end with status 0. A block below the line `<!-- not run: REASON -->` is not run.
"""
import argparse
import pathlib
import re
import subprocess
import sys

NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
NUMBER = r"\d(?:[\d,.:]*\d)?"


class Shown:
    """A command of a document and the lines that it is shown to print."""

    def __init__(self, command, line):
        self.command = command
        self.line = line
        self.output = []


def shown_commands(text):
    """Yields (Shown, reason not to run it or None) for each command of the document's console blocks."""
    reason, inside, current = None, False, None
    for number, line in enumerate(text.splitlines(), 1):
        if not inside:
            found = NOT_RUN.fullmatch(line.strip())
            if line.strip() == "```console":
                inside = True
            elif found or line.strip():
                reason = found.group(1) if found else None
        elif line.strip() == "```":
            if current:
                yield current, reason
            inside, current, reason = False, None, None
        elif line.startswith("$ "):
            if current:
                yield current, reason
            current = Shown(line[2:], number)
        elif current:
            current.output.append(line)


def pattern_of(line):
    """A regular expression for what one shown line stands for."""
    parts = []
    after_number = False
    for part in filter(None, re.split(rf"({NUMBER}|\.\.\.|\s+)", line.strip())):
        if part == "...":
            parts.append(".*")
        elif re.fullmatch(NUMBER, part):
            parts.append(NUMBER)
        elif part.isspace():
            parts.append(r"\s+")
        else:
            text = re.escape(part)
            parts.append(re.sub(r"^(\w+?)s?(?!\w)", r"\1s?", text) if after_number else text)
        after_number = re.fullmatch(NUMBER, part) or (after_number and part.isspace())
    return re.compile("".join(parts))


def first_mismatch(shown, printed):
    """The first shown line that the printed lines do not have at its place, or None if all are there and nothing else is."""
    at, anything = 0, False
    for line in shown:
        if line.strip() == "...":
            anything = True
            continue
        pattern = pattern_of(line)
        while anything and at < len(printed) and not pattern.fullmatch(printed[at].strip()):
            at += 1
        if at == len(printed) or not pattern.fullmatch(printed[at].strip()):
            return f"expected a line like\n  {line}\ngot\n  " + (printed[at] if at < len(printed) else "the end")
        at, anything = at + 1, False
    if at < len(printed) and not anything:
        return f"expected the end, got\n  {printed[at]}"
    return None


def run(command, folder, limit):
    done = subprocess.run(["bash", "-c", command], cwd=folder, text=True, timeout=limit, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout, done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", type=pathlib.Path)
    parser.add_argument("--printed", nargs=2, action="append", default=[], metavar=("COMMAND", "FILE"),
                        help="what a command printed that ran already: it is not run again")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for one command (600)")
    options = parser.parse_args()
    printed = dict(options.printed)
    problems, checked = [], 0
    for shown, reason in shown_commands(options.document.read_text()):
        where = f"{options.document}:{shown.line}: $ {shown.command}"
        if reason:
            print(f"{where}\n  not run: {reason}")
            continue
        if shown.command in printed:
            text, status = pathlib.Path(printed[shown.command]).read_text(), 0
        else:
            print(where, flush=True)
            text, status = run(shown.command, options.document.resolve().parent, options.limit)
        checked += 1
        trouble = f"ended with status {status}" if status else first_mismatch(shown.output, text.splitlines())
        if trouble:
            problems.append(f"{where}\n{trouble}\nof what it printed:\n{text}")
    for each in problems:
        print(each, file=sys.stderr)
    if not checked and not problems:
        print(f"{options.document}: no console block that can be run", file=sys.stderr)
        return 1
    print(f"{checked - len(problems)} of {checked} commands print what the document shows")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
