#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Puts small faults into the sources, one at a time, and tells which of them no test notices.

All drawn faults (mutants) are compiled in at once, each behind a switch that an environment variable turns on, so that
the code is built once. A test case is run with a mutant only if it runs into it, those of the mutant's own folder first."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time

tools = pathlib.Path(__file__).resolve().parent
root = tools.parents[1]
sys.path.insert(0, str(tools))


def options():
    parser = argparse.ArgumentParser(
        prog="make mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: make mutate FILES='engine/*.cpp engine/*.hpp' N=100 SEED=1")
    parser.add_argument("--files", nargs="+", required=True, help="sources or patterns of them, relative to the project's folder")
    parser.add_argument("--count", type=int, default=20, help="mutants to draw from each folder: the top folders, and engine/protocol (default: 20)")
    parser.add_argument("--together", action="store_true", help="--count is for all files together, not for each folder")
    parser.add_argument("--seed", type=int, default=1, help="which are drawn (default: 1)")
    parser.add_argument("--folder", type=pathlib.Path, default=root / "build/mutate", help="where the faulty tree is built")
    parser.add_argument("--torch", type=pathlib.Path, help="libtorch's folder (default: as the project's build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers and tests at once")
    parser.add_argument("--patience", type=float, default=60, metavar="SECONDS",
                        help="of tests for one mutant, the shortest first; it survives if none of those notices it (default: 60)")
    parser.add_argument("--label", help="only test cases of this label of Boost.Test may notice a fault, such as explored")
    parser.add_argument("--targets", nargs="+", default=["all", "tests"], help="what is built (default: everything)")
    parser.add_argument("--again", type=pathlib.Path, metavar="FILE",
                        help="what an earlier run on the same sources wrote with --out: only its survivors are run again")
    parser.add_argument("--out", type=pathlib.Path, help="a JSON file for what was found")
    parser.add_argument("--list", action="store_true", help="only list what is drawn")
    given = parser.parse_args()
    if given.count < 1:
        parser.error(f"--count: expected at least 1, got {given.count}")
    given.sources = []
    for pattern in given.files:
        matched = sorted(path.relative_to(root) for path in root.glob(pattern) if path.suffix in (".cpp", ".hpp"))
        if not matched:
            parser.error(f"--files: no C++ source in {root} matches '{pattern}'")
        given.sources += [path for path in matched if path not in given.sources]
    return given


def say(text):
    print(text, flush=True)


def call(*command, **more):
    return subprocess.run([str(each) for each in command], text=True, **more)


def read_tree():
    """The project's files as they are now, by name: who works on while the tool runs does not disturb it."""
    listed = call("git", "ls-files", "-co", "--exclude-standard", cwd=root, check=True, capture_output=True).stdout
    return {name: (root / name).read_bytes() for name in listed.splitlines() if (root / name).is_file()}


def write_tree(target, tree):
    """Makes `target` a copy. What is the same is not touched, so that little is built again."""
    for name, content in tree.items():
        path = target / name
        if path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        shutil.copymode(root / name, path)
    for path in list(target.rglob("*")):
        if path.is_file() and str(path.relative_to(target)) not in tree:
            path.unlink()


def configure(given, source, build):
    venv, torch = source / ".venv", given.torch or os.environ.get("TROUPE_TORCH_DIR")
    if torch is None and not venv.exists():
        venv.symlink_to(root / ".venv")
    more = [f"-DTROUPE_TORCH_DIR={torch}"] if torch else []
    done = call("cmake", "--preset", "release", "-B", build, "-DTROUPE_WERROR=OFF", "-DTROUPE_CUDA=OFF", *more, cwd=source,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"mutate: the copy of the tree can't be configured:\n{done.stderr}")


def prepare_reading(given, build):
    """What sources include that is made while building: protobuf's headers and precompiled headers."""
    targets = call("ninja", "-C", build, "-t", "targets", "all", capture_output=True, check=True).stdout
    headers = re.findall(r"^(\S*cmake_pch\.hxx\.pch): ", targets, re.MULTILINE)
    done = call("ninja", "-C", build, "-j", given.jobs, "generated", *headers, capture_output=True)
    if done.returncode:
        sys.exit(f"mutate: the copy of the tree can't be built:\n{done.stdout[-3000:]}")


def draw(given, source, build):
    try:
        from candidates import collect
    except ImportError:
        sys.exit("mutate: Clang's Python module is missing; run: sudo apt-get install -y python3-clang")
    found, unread = collect(build, [os.path.realpath(source / path) for path in given.sources])
    for path in unread:
        say(f"mutate: {os.path.relpath(path, source)} holds no code that a unit of the build reads")
    taken, folders = {}, {}
    random.Random(given.seed).shuffle(found)
    for each in found:
        spans = taken.setdefault(each.path, [])
        if all(each.end <= begin or end <= each.begin for begin, end in spans):
            spans.append((each.begin, each.end))
            folders.setdefault(folder_of(given, each, source), []).append(each)
    say(f"mutate: {len(found)} candidates in {len(given.sources)} files, drawn with seed {given.seed}: " +
        ", ".join(f"{min(given.count, len(those))} in {folder}" for folder, those in sorted(folders.items())))
    return folders


def folder_of(given, candidate, source):
    if given.together:
        return "all files"
    name = os.path.relpath(candidate.path, source)
    return "engine/protocol" if name.startswith("engine/protocol/") else name.split("/")[0]


def mutated(source, mutants, tree):
    """The texts of the files of `mutants`, a dictionary of numbers and candidates, with all switches in. The candidates lie
    below the folder `source`, a copy of `tree`."""
    by_file = {}
    for number, each in mutants.items():
        by_file.setdefault(each.path, []).append((number, each))
    texts = {}
    for path, those in by_file.items():
        name = os.path.relpath(path, source)
        text = tree[name]
        for number, each in sorted(those, key=lambda pair: -pair[1].begin):
            switch = each.text.replace("@", f"troupe_mutation::mutant_is_on({number})").encode()
            text = text[:each.begin] + switch + text[each.end:]
        include = b'#include "' + os.fsencode(tools / "switches.hpp") + b'"\n'
        first = text.index(b"#") if path.endswith(".cpp") else text.index(b"#pragma once\n") + len(b"#pragma once\n")
        texts[name] = text[:first] + include + b"#line " + str(text[:first].count(b"\n") + 1).encode() + b"\n" + text[first:]
    return texts


def build_all(given, source, build, drawn, tree):
    """Builds the tree with as many mutants as were asked for; those that the compiler refuses are left out."""
    numbered = {folder: list(enumerate(those, 1000 * index)) for index, (folder, those) in enumerate(sorted(drawn.items()))}
    mutants = {number: each for those in numbered.values() for number, each in those[:given.count]}
    spare = {folder: those[given.count:] for folder, those in numbered.items()}
    main_file = tree["tests/support/main.cpp"] + b'#include "' + os.fsencode(tools / "case_marks.hpp") + b'"\n'
    for _ in range(12):
        write_tree(source, {**tree, **mutated(source, mutants, tree), "tests/support/main.cpp": main_file})
        begun = time.monotonic()
        done = call("ninja", "-C", build, "-j", given.jobs, "-k", "0", *given.targets, capture_output=True)
        if done.returncode == 0:
            say(f"mutate: built with {len(mutants)} mutants in {time.monotonic() - begun:.0f} s")
            return mutants
        lines = {(os.path.realpath(build / path), int(line))
                 for path, line in re.findall(r"^(\S+?):(\d+):\d+: (?:fatal )?(?:error|note): ", done.stdout, re.MULTILINE)}
        refused = [number for number, each in mutants.items() if (each.path, each.line) in lines]
        if not refused:
            sys.exit(f"mutate: the tree with mutants can't be built:\n{done.stdout[-5000:]}")
        for number in refused:
            others = spare[folder_of(given, mutants.pop(number), source)]
            if others:
                mutants.update([others.pop(0)])
        say(f"mutate: {len(refused)} can't be compiled, others take their places")
    sys.exit("mutate: too many mutants can't be compiled")


def equivalents():
    """Mutants that change nothing that a test could see, by file and text, each with its reason."""
    lines = (pathlib.Path(__file__).parent / "equivalent.txt").read_text().splitlines()
    return {tuple(line.split("\t")[:2]) for line in lines if line and not line.startswith("#")}


def main():
    given = options()
    source, build = given.folder / "source", given.folder / "build"
    say(f"mutate: reading {len(given.sources)} files ...")
    tree = read_tree()
    write_tree(source, tree)
    configure(given, source, build)
    prepare_reading(given, build)
    drawn = draw(given, source, build)
    if given.list:
        for each in [each for those in drawn.values() for each in those[:given.count]]:
            say(f"{os.path.relpath(each.path, source)}:{each.line}: {each.what}")
        return
    say("mutate: building (the first time from scratch) ...")
    mutants = build_all(given, source, build, drawn, tree)
    report(given, source, run_tests(given, source, build, mutants), mutants)


def noticed_before(given):
    """Outcomes of an earlier run, by file, line and change."""
    if given.again is None:
        return {}
    rows = json.loads(given.again.read_text())["mutants"]
    return {(row["file"], row["line"], row["change"]): row["outcome"] for row in rows if row["outcome"].startswith("noticed")}


def run_tests(given, source, build, mutants):
    from suite import Suite
    suite = Suite(build, max(mutants) + 1, given.label)
    say(f"mutate: running {len(suite.tests)} tests without a fault ...")
    reached = given.folder / "reached"
    reached.mkdir(exist_ok=True)

    def look(test):
        begun = time.monotonic()
        passed = suite.survey(test, reached)
        say(f"  {time.monotonic() - begun:6.1f} s  {test.name}" +
            ("" if passed else ": fails without a fault, or checks the sources themselves, and is left out"))
        return passed

    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        passed = list(pool.map(look, suite.tests))
    suite.tests = [test for test, good in zip(suite.tests, passed) if good]
    known, before, found, lock = equivalents(), noticed_before(given), {}, threading.Lock()

    def one(number):
        each = mutants[number]
        name = os.path.relpath(each.path, source)
        begun = time.monotonic()
        if (name, each.what) in known:
            outcome = "equivalent"
        elif (name, each.line, each.what) in before:
            outcome = before[name, each.line, each.what]
        else:
            test, is_reached = suite.notice(number, os.path.dirname(name), given.patience)
            outcome = f"noticed by {test.name}" if test else "SURVIVED" if is_reached else "SURVIVED, not reached by any test"
        with lock:
            found[number] = outcome
            say(f"[{len(found):3}/{len(mutants)}] {time.monotonic() - begun:6.1f} s  {outcome:<45}  {name}:{each.line}: {each.what}")

    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(one, mutants))
    return found


def report(given, source, found, mutants):
    rows = [{"folder": folder_of(given, mutants[number], source), "file": os.path.relpath(mutants[number].path, source),
             "line": mutants[number].line, "change": mutants[number].what, "outcome": outcome} for number, outcome in sorted(found.items())]
    say(f"\nnoticed, of those that are not equivalent (seed {given.seed}):")
    for folder in sorted({row["folder"] for row in rows}):
        outcomes = [row["outcome"] for row in rows if row["folder"] == folder]
        different = [each for each in outcomes if each != "equivalent"]
        noticed = sum(each.startswith("noticed") for each in different)
        say(f"  {folder:<16} {noticed} of {len(different)}" +
            (f", {len(outcomes) - len(different)} equivalent" if len(outcomes) > len(different) else ""))
    survived = [row for row in rows if row["outcome"].startswith("SURVIVED")]
    say("\nno test notices:" if survived else "")
    for row in sorted(survived, key=lambda row: (row["file"], row["line"])):
        say(f"  {row['file']}:{row['line']}: {row['change']}{'  (no test runs it)' if 'not reached' in row['outcome'] else ''}")
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps({"seed": given.seed, "files": given.files, "mutants": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
