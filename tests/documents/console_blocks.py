# SPDX-License-Identifier: BSD-3-Clause
"""Finds the commands that a document shows in blocks `console` and `sh`, and compares what they print with what the block shows.

In a block `console` a line that begins with `$ ` is a command, with `h1$ ` one of the host h1. The lines up to the next command are what it
prints. If there are none, it may print anything:
  - a line `...` stands for any lines, also none; `...` within a line for any text;
  - a number stands for any number (also 1,234.5 and 1:42), and the word after it for one or several (2 threads, 1 thread);
  - how many blanks stand between two words does not matter.
In a block `sh` each line is a command, and nothing is compared. A line goes on after a backslash. A command has to end with status 0.
"""
import re
import sys

NUMBER = r"\d(?:[\d,.:]*\d)?"


class Shown:
    """A command of a document, the host that its prompt or its comment (`# on h1`) names, and the lines that it is shown to print."""

    def __init__(self, command, line, host=""):
        self.command = command
        self.line = line
        named = re.search(r"\s# on (\w+)$", command)
        self.host = named[1] if named else host
        self.output = []

    def without_comment(self):
        return re.sub(r"\s+#.*", "", self.command)


def blocks(text):
    """The blocks of a document: a list of Shown for each."""
    found, language = [], None
    for number, line in enumerate(text.splitlines(), 1):
        begins = re.fullmatch(r"```(console|sh)", line.strip())
        if language is None and begins:
            language = begins[1]
            found.append([])
        elif line.strip() == "```":
            language = None
        elif language:
            prompt = re.match(r"(\w*)\$ (.+)" if language == "console" else r"()(.+)", line)
            if found[-1] and found[-1][-1].command.endswith("\\"):
                found[-1][-1].command += "\n" + line
            elif prompt:
                found[-1].append(Shown(prompt[2], number, prompt[1]))
            elif found[-1] and language == "console":
                found[-1][-1].output.append(line)
    return found


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


def trouble_of(shown, printed, status):
    """What is wrong with a command that printed this text, or None."""
    wrong = f"ended with status {status}" if status else shown.output and first_mismatch(shown.output, printed.splitlines())
    return f"{wrong}\nof what it printed:\n{printed}" if wrong else None


def check(document, commands, run_one):
    """Runs the commands by run_one(shown), which returns what the command printed and its status. Returns whether all is well."""
    problems = []
    for shown in commands:
        where = f"{document}:{shown.line}: {shown.host}$ {shown.command}"
        print(where, flush=True)
        if trouble := trouble_of(shown, *run_one(shown)):
            problems.append(f"{where}\n{trouble}")
    for each in problems:
        print(each, file=sys.stderr)
    print(f"{len(commands) - len(problems)} of {len(commands)} commands do what the document shows", flush=True)
    return bool(commands) and not problems
