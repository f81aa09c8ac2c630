#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own suites for torch.distributed.rpc and distributed autograd, which its wheel has, on troupe's backend.

  suite.py BACKEND RESULTS [SUITE[.TEST] ...]   runs the tests on `tensorpipe` or `troupe`; adds a line of JSON for each to the file
                                                RESULTS, and leaves out those that it has
  suite.py compare TENSORPIPE TROUPE            fails if a test passes on TensorPipe alone and differences.txt does not name it"""
import collections
import contextlib
import io
import json
import logging
import os
import pathlib
import sys
import time
import unittest

DIFFERENCES = pathlib.Path(__file__).with_name("differences.txt")
SECONDS_OF_A_TEST = "60"
HEARTBEAT = "--heartbeat-ms=10000"  # four processes on a busy machine can be without a CPU for seconds


def classes_for(backend, module):
    import torch
    from torch.distributed import rpc
    from torch.testing._internal.distributed import rpc_utils
    from torch.testing._internal.distributed.rpc.tensorpipe_rpc_agent_test_fixture import TensorPipeRpcAgentTestFixture

    class Forked(rpc_utils.MultiProcessTestCase):
        """As PyTorch's SpawnHelper, but forks: importing torch four times takes longer than a test."""

        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    class OnTroupe(TensorPipeRpcAgentTestFixture):
        @property
        def rpc_backend(self):
            return rpc.backend_registry.BackendType["TROUPE"]

        @property
        def rpc_backend_options(self):
            return rpc.backend_registry.construct_rpc_backend_options(self.rpc_backend, init_method=self.init_method,
                                                                      node=[HEARTBEAT])

    if backend == "troupe":
        import torchtroupe.rpc  # noqa: F401
    rpc_utils.SpawnHelper = Forked
    fixture = OnTroupe if backend == "troupe" else TensorPipeRpcAgentTestFixture
    suites = rpc_utils.GENERIC_TESTS + rpc_utils.TENSORPIPE_TESTS
    return rpc_utils.generate_tests("", fixture, suites, module)


def run(backend, results, wanted):
    os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", SECONDS_OF_A_TEST)
    if "TORCHTROUPE_TEST_LOG" not in os.environ:
        logging.disable(logging.CRITICAL)
    classes = classes_for(backend, __name__)
    globals().update(classes)  # PyTorch's tests pickle functions of these classes
    done = {(each["suite"], each["test"]) for each in read(results)} if os.path.exists(results) else set()
    for suite, tests in classes.items():
        for test in unittest.TestLoader().loadTestsFromTestCase(tests):
            name = test.id().split(".")[-1]
            if (suite, name) in done or wanted and suite not in wanted and f"{suite}.{name}" not in wanted and name not in wanted:
                continue
            began, result = time.time(), unittest.TestResult()
            with contextlib.redirect_stdout(io.StringIO()):
                test.run(result)
            texts = [text for _, text in result.failures + result.errors + result.skipped]
            line = {"suite": suite, "test": name, "s": round(time.time() - began, 2), "text": "".join(texts)[-6000:],
                    "status": "skip" if result.skipped else "pass" if result.wasSuccessful() else "fail"}
            with open(results, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def compare(tensorpipe, troupe):
    """Prints how many tests pass, and each difference. Fails for a difference without a reason."""
    theirs = {(each["suite"], each["test"]): each for each in read(tensorpipe)}
    ours = {(each["suite"], each["test"]): each for each in read(troupe)}
    known = {}
    for line in DIFFERENCES.read_text().splitlines():
        if line and not line.startswith("#"):
            name, reason = line.split(None, 1)
            known[tuple(name.split(".", 1))] = reason
    lost = [key for key, each in theirs.items() if each["status"] == "pass" and ours.get(key, {}).get("status") != "pass"]
    passed = sum(each["status"] == "pass" for each in theirs.values())
    print(f"of the {passed} tests that pass on TensorPipe, {passed - len(lost)} pass on troupe")
    counts = collections.Counter((suite, each["status"]) for (suite, _), each in ours.items())
    for (suite, status), count in sorted(counts.items()):
        print(f"  {suite}: {count} {status}")
    for key in lost:
        print(f"  {'.'.join(key)}: {known.get(key, 'NO REASON: ' + ours.get(key, {}).get('text', 'was not run')[-600:])}")
    return 0 if all(key in known for key in lost) else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if sys.argv[1] == "compare":
        sys.exit(compare(*sys.argv[2:4]))
    backend, results, wanted = sys.argv[1], sys.argv[2], set(sys.argv[3:])
    sys.argv = sys.argv[:1]
    run(backend, results, wanted)
