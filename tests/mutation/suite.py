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

QUICK = 0.2  # seconds of a test case: such are run before the others of their program
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
    tests_of: str
    cases: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Case:
    """A test case of a program of Boost.Test, or a whole test of another kind (no name)."""
    name: str
    seconds: float
    reached: set


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
    """The tests that ctest knows in the folder `build`, but for those whose program was not built."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"],
                                       check=True, capture_output=True, text=True).stdout)
    found = []
    for each in listed["tests"]:
        if "command" not in each:
            continue
        values = {one["name"]: one["value"] for one in each.get("properties", [])}
        environment = dict(pair.split("=", 1) for pair in values.get("ENVIRONMENT", []))
        folder = values.get("WORKING_DIRECTORY", str(build))
        tests_of = os.path.relpath(folder, build / "tests")
        found.append(Test(each["name"], each["command"], folder, environment, (values.get("LABELS") or ["engine"])[0],
                          float(values.get("TIMEOUT", 180)), tests_of))
    return found


def has_label(test, label):
    """Whether the test is a program of Boost.Test with a test case of the label."""
    listed = subprocess.run([test.command[0], "--list_labels"], capture_output=True, text=True, env={**os.environ, **test.environment})
    return label in (listed.stdout + listed.stderr).split()


class Suite:
    def __init__(self, build, size, label=None):
        self.tests = [test for test in tests_of(build) if os.path.exists(test.command[0])]
        if label:
            self.tests = [test for test in self.tests if has_label(test, label)]
        self.all_cases = [f"@{label}"] if label else []
        self.turns = Turns()
        self.size = size

    def run(self, test, limit, cases=(), **switches):
        """Whether the cases of the test pass, all of them where none is named. It is ended at its first failure."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_MUTANT")}
        command = test.command + [f"--run_test={name}" for name in cases or self.all_cases]
        with self.turns.of(test.kind):
            return self.finish(test, command, {**environment, **test.environment, **switches}, limit)

    def finish(self, test, command, environment, limit):
        process = subprocess.Popen(command, cwd=test.folder, env=environment, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True, preexec_fn=self.bound)
        timer = threading.Timer(limit, self.end, [process])
        timer.start()
        failed = False
        try:
            for line in process.stdout:
                if "Test setup error" in line:
                    raise RuntimeError(f"mutate: {' '.join(command)}: {line.strip()}")
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
        """Runs the test without a fault: which mutants each of its cases runs into. False if it fails."""
        name = test.name.replace("/", "_")
        marks, lines = (pathlib.Path(folder) / f"{name}.{what}" for what in ("reached", "cases"))
        for _ in range(2):
            marks.write_bytes(bytes(self.size))
            lines.write_text("")
            begun = time.monotonic()
            if self.run(test, test.limit, TROUPE_MUTANTS_REACHED=str(marks), TROUPE_MUTANT_CASES=str(lines)):
                break
        else:
            return False
        rows = [line.split("\t") for line in lines.read_text().splitlines()]
        test.cases = [Case(name, int(microseconds) / 1e6, set(map(int, numbers.split()))) for name, microseconds, numbers in rows]
        if not rows:
            reached = {number for number, mark in enumerate(marks.read_bytes()) if mark}
            test.cases = [Case("", time.monotonic() - begun, reached)]
        return True

    def trials(self, mutant, folder):
        """What to run with a mutant, the likeliest first: tests, names of their cases and the seconds these take."""
        found = []
        for test in self.tests:
            concerned = sorted((case for case in test.cases if mutant in case.reached), key=lambda case: case.seconds)
            quick = [case for case in concerned if case.seconds < QUICK]
            for part in (quick, concerned[len(quick):]):
                if part:
                    found.append((test, [case.name for case in part if case.name], sum(case.seconds for case in part)))
        return sorted(found, key=lambda trial: (not f"{folder}/".startswith(f"{trial[0].tests_of}/"), trial[0].kind in ("cluster", "timed"), trial[2]))

    def notice(self, mutant, folder, patience):
        """The first test that fails with the mutant, or None; and whether any runs into it. What would take longer than `patience`,
        in seconds and without a fault, together with what was run before, is left out."""
        trials = self.trials(mutant, folder)
        for test, cases, seconds in trials:
            patience -= seconds
            if patience < 0:
                patience += seconds
                continue
            # A test of processes and times may fail by the machine's load alone: it has to fail twice.
            tries = 2 if test.kind in ("cluster", "timed") else 1
            limit = min(test.limit, 10 + 5 * seconds)
            if all(not self.run(test, limit, cases, TROUPE_MUTANT=str(mutant)) for _ in range(tries)):
                return test, True
        return None, bool(trials)
