# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests of a build folder with one mutant switched on."""
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import threading
import time

FAILURE = re.compile(r"(: (fatal )?error: in |^unknown location\(0\)|\*\*\* \d+ failures? )")


@dataclasses.dataclass
class Test:
    """One test of ctest's list. `kind` is its label: engine, actor, cluster or timed."""
    name: str
    command: list
    folder: str
    environment: dict
    kind: str
    limit: float
    room: str
    seconds: float = 0.0
    reached: bytes = b""


class Turns:
    """Cluster tests one at a time, as with ctest; a timed test alone."""

    def __init__(self):
        self.changed = threading.Condition()
        self.running = 0
        self.cluster = False
        self.alone = False

    @contextlib.contextmanager
    def of(self, kind):
        serial, alone = kind in ("cluster", "timed"), kind == "timed"
        with self.changed:
            self.changed.wait_for(lambda: not self.alone and not (serial and self.cluster) and not (alone and self.running))
            self.running += 1
            self.cluster = self.cluster or serial
            self.alone = alone
        try:
            yield
        finally:
            with self.changed:
                self.running -= 1
                self.cluster = self.cluster and not serial
                self.alone = False
                self.changed.notify_all()


def tests_of(build):
    """The tests that ctest knows in the folder `build`."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"],
                                       check=True, capture_output=True, text=True).stdout)
    found = []
    for each in listed["tests"]:
        values = {one["name"]: one["value"] for one in each.get("properties", [])}
        environment = dict(pair.split("=", 1) for pair in values.get("ENVIRONMENT", []))
        folder = values.get("WORKING_DIRECTORY", str(build))
        room = os.path.relpath(folder, build / "tests")
        found.append(Test(each["name"], each["command"], folder, environment, (values.get("LABELS") or ["engine"])[0],
                          float(values.get("TIMEOUT", 180)), room))
    return found


class Suite:
    def __init__(self, build, size):
        self.tests = tests_of(build)
        self.turns = Turns()
        self.size = size

    def run(self, test, mutant=None, reached=None, limit=None):
        """Whether the test passes, and the seconds it took. It is ended at its first failure."""
        environment = {**os.environ, **test.environment}
        environment.pop("TROUPE_MUTANT", None)
        if mutant is not None:
            environment["TROUPE_MUTANT"] = str(mutant)
        if reached is not None:
            environment["TROUPE_MUTANTS_REACHED"] = str(reached)
        with self.turns.of(test.kind):
            begun = time.monotonic()
            passed = self.finish(test, environment, limit or test.limit)
            return passed, time.monotonic() - begun

    def finish(self, test, environment, limit):
        process = subprocess.Popen(test.command, cwd=test.folder, env=environment, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True, preexec_fn=self.bound)
        timer = threading.Timer(limit, self.end, [process])
        timer.start()
        failed = False
        try:
            for line in process.stdout:
                if FAILURE.search(line):
                    failed = True
                    break
            if failed:
                self.end(process)
            process.stdout.close()
            return process.wait() == 0 and not failed
        finally:
            timer.cancel()
            self.end(process)

    @staticmethod
    def bound():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # A fault may allocate without end: then the system is to end this process, and no other.
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")

    @staticmethod
    def end(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    def survey(self, test, folder):
        """Runs the test without a fault: its time, and which mutants it reaches. False if it fails."""
        path = pathlib.Path(folder) / f"{test.name}.reached"
        path.write_bytes(bytes(self.size))
        for _ in range(2):
            passed, test.seconds = self.run(test, reached=path)
            if passed:
                break
        test.reached = path.read_bytes()
        return passed

    def notice(self, mutant, room):
        """The first test that fails with the mutant, or None; and the number of tests that run into it."""
        concerned = [each for each in self.tests if each.reached[mutant]]
        concerned.sort(key=lambda each: (each.room != room, each.kind in ("cluster", "timed"), each.seconds))
        for test in concerned:
            limit = min(test.limit, max(20.0, 5 * test.seconds))
            # A test of processes and times may fail by the machine's load alone: it has to fail twice.
            tries = 2 if test.kind in ("cluster", "timed") else 1
            if all(not self.run(test, mutant, limit=limit)[0] for _ in range(tries)):
                return test, len(concerned)
        return None, len(concerned)
