#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs each program of the folder beside this file on PyTorch's engine and on troupe's, by LD_PRELOAD or by an import: they have
to print the same. Example: compare.py --preload build/release/engine/drop_in/libtroupe_preload.so --only hooks"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import time

folder = pathlib.Path(__file__).parent / "programs"


# Programs elsewhere in the project, with their arguments.
others = {pathlib.Path(__file__).parents[2] / "packaging/bundle/gpu/drop_in.py": ["--device", "cpu"]}


def start(program, device, engine=None):
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TROUPE_SIMULATED_DEVICE": str(device), **(engine or {})}
    return subprocess.Popen([sys.executable, str(program), *others.get(program, [])], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process):
    try:
        output, errors = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        errors += "\nnot done after 300 s"
    return process.returncode, output, errors


def difference(program, device, engine):
    """Why the two runs are not alike, or an empty text, and how many passes troupe ran."""
    both = [start(program, device), start(program, device, engine)]
    plain, ours = (finish(each) for each in both)
    for name, (code, output, errors) in (("PyTorch's engine", plain), ("troupe's", ours)):
        if code != 0 or not output:
            return f"exit code {code} on {name}:\n{errors[-3000:]}", 0
    if plain[1] != ours[1]:
        lines = difflib.unified_diff(plain[1].splitlines(), ours[1].splitlines(), "PyTorch", "troupe", lineterm="", n=0)
        return "\n".join(lines), 0
    # A forked child may have a report of its own; the parent's is the last.
    reports = re.findall(r"^troupe: (\d+) backward passes", ours[2], re.MULTILINE)
    passes = int(reports[-1]) if reports else 0
    return ("" if passes > 0 else f"no pass ran on troupe's engine:\n{ours[2][-3000:]}"), passes


def main():
    options = argparse.ArgumentParser(description=__doc__)
    way = options.add_mutually_exclusive_group(required=True)
    way.add_argument("--preload", type=pathlib.Path, help="libtroupe_preload.so, with libtroupe.so beside it")
    way.add_argument("--library", type=pathlib.Path, help="libtorchtroupe-*.so, for the package in the source tree")
    way.add_argument("--installed", action="store_true", help="the package torchtroupe that this Python has")
    options.add_argument("--device", required=True, type=pathlib.Path, help="simulated_device.so, the accelerator for programs")
    options.add_argument("--only", nargs="*", default=[], help="names of programs (default: all)")
    given = options.parse_args()
    engine, needed = {"TORCHTROUPE": "1"}, {"simulated_device_module": given.device}
    if given.preload:
        engine, needed["troupe_preload"] = {"LD_PRELOAD": str(given.preload.resolve())}, given.preload
    elif given.library:
        engine |= {"TORCHTROUPE_LIBRARY": str(given.library.resolve()), "PYTHONPATH": str(folder.parent / "as_installed")}
        needed["torchtroupe_native"] = given.library
    for target, file in needed.items():
        if not file.exists():
            options.error(f"there is no file '{file}'; build the target {target}")
    programs = sorted([*(each for each in folder.glob("*.py") if each.stem != "record"), *others])
    unknown = set(given.only) - {each.stem for each in programs}
    if unknown:
        options.error(f"--only: no program {', '.join(sorted(unknown))}; there are {', '.join(each.stem for each in programs)}")
    failed = 0
    for program in programs:
        if given.only and program.stem not in given.only:
            continue
        begun = time.monotonic()
        found, passes = difference(program, given.device.resolve(), engine | {"TROUPE_REPORT": "1"})
        failed += bool(found)
        print(f"{'FAILED' if found else 'same  '}  {program.stem:<18} {passes:>5} passes  {time.monotonic() - begun:5.1f} s", flush=True)
        if found:
            print(found)
    print(f"{failed} failed" if failed else "all the same, bit for bit")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
