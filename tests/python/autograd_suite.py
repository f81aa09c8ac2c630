#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own tests on PyTorch's engine and after torchtroupe.install().

  autograd_suite.py TESTS RESULTS [FILE ...]   TESTS: the folder `test` of PyTorch's sources. Adds a line of JSON for each test to
                                               RESULTS/pytorch.jsonl and RESULTS/troupe.jsonl, leaves out tests that are there,
                                               and names the tests with two outcomes

Fails if a test passes on PyTorch's engine alone, or if a file can't be imported. Each file runs in a process of its own, which starts again behind a test that ends it."""
import collections
import contextlib
import faulthandler
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

FILES = ("test_autograd*.py", "autograd/test_*.py", "test_utils.py", "nn/test_module_hooks.py", "test_nn.py",
         "functorch/test_eager_transforms.py")
SECONDS_OF_A_TEST = 300


def read(results):
    """The outcome of each test. A test that was begun and has no outcome has ended its process."""
    found = {}
    if results.exists():
        for line in results.read_text().splitlines():
            each = json.loads(line)
            found[each["file"], each["test"]] = each
    return found


def tests_of(suite):
    for each in suite:
        yield from tests_of(each) if isinstance(each, unittest.TestSuite) else [each]


def run_file(tests, file, engine, results):
    """Runs the tests of a file in this process."""
    faulthandler.dump_traceback_later(SECONDS_OF_A_TEST, exit=True)
    sys.path[0] = str(tests)
    sys.argv = [str(tests / file)]  # PyTorch looks whether its tests are defined there
    if engine == "troupe":
        import torchtroupe
        torchtroupe.install()
    spec = importlib.util.spec_from_file_location(pathlib.Path(file).stem, tests / file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    done = read(results)
    for test in tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)):
        line = {"file": file, "test": ".".join(test.id().split(".")[-2:]), "status": "ended its process"}
        if (line["file"], line["test"]) in done:
            continue
        with open(results, "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
            out.flush()
            faulthandler.dump_traceback_later(SECONDS_OF_A_TEST, exit=True)
            begun, result = time.monotonic(), unittest.TestResult()
            with contextlib.redirect_stdout(io.StringIO()):
                test.run(result)
            faulthandler.cancel_dump_traceback_later()
            texts = [text for _, text in result.failures + result.errors + result.skipped]
            status = "skip" if result.skipped else "pass" if result.wasSuccessful() else "fail"
            out.write(json.dumps(line | {"status": status, "s": round(time.monotonic() - begun, 2), "text": "".join(texts)[-3000:]}) + "\n")
    if engine == "troupe":
        print(f"{file}: {torchtroupe.report()}", flush=True)


def run(tests, file, engine, results):
    while True:
        before = len(read(results))
        done = subprocess.run([sys.executable, __file__, "--one", tests, file, engine, results], stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            return
        if len(read(results)) == before:  # as with sources of another PyTorch
            line = {"file": file, "test": "its import", "status": "fail", "text": done.stderr[-3000:]}
            with open(results, "a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
            return


def compare(folder):
    theirs, ours = (read(folder / f"{engine}.jsonl") for engine in ("pytorch", "troupe"))
    counts = collections.Counter((file, each["status"]) for (file, _), each in ours.items())
    for (file, status), count in sorted(counts.items()):
        print(f"{file}: {count} {status}")
    for key, each in theirs.items():
        our = ours.get(key, {"status": "was not run"})
        if our["status"] != each["status"] or key[1] == "its import":
            print(f"{key[0]} {key[1]}: {each['status']} on PyTorch's engine, {our['status']} on troupe's: {our.get('text', '')[-1500:]}")
    passed = [key for key, each in theirs.items() if each["status"] == "pass"]
    lost = [key for key in passed if ours.get(key, {}).get("status") != "pass"]
    print(f"of the {len(passed)} tests that pass on PyTorch's engine, {len(passed) - len(lost)} pass on troupe's")
    broken = sorted({file for file, test in theirs | ours if test == "its import"})
    if broken:
        print(f"expected that each file can be imported, and these can't: {', '.join(broken)}. Take the sources of this PyTorch, or name "
              f"other files; begin with an empty {folder}")
    return 1 if lost or broken or not passed else 0


def main():
    tests, folder = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
    files = [str(each.relative_to(tests)) for pattern in sys.argv[3:] or FILES for each in sorted(tests.glob(pattern))]
    if not files:
        sys.exit(f"expected {', '.join(sys.argv[3:] or FILES)} in {tests}: the folder `test` of PyTorch's sources")
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        for engine in ("pytorch", "troupe"):
            run(tests, file, engine, folder / f"{engine}.jsonl")
    return compare(folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run_file(pathlib.Path(sys.argv[2]), *sys.argv[3:5], pathlib.Path(sys.argv[5]))
    elif len(sys.argv) < 3:
        sys.exit(__doc__)
    else:
        sys.exit(main())
