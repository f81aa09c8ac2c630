#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of README and of the pages: pages.py hosts, pages.py ci, or pages.py check, which only looks at the lists below and counts words.

  hosts   what takes seconds. Each host is a network namespace with a folder of its own. A command without a host runs on one called `here`,
          `scp` copies from folder to folder, and a command that serves runs until the page ends or has the same command again.
  ci      what takes minutes, in the folder of the repository. HOME is an empty folder.
"""
import argparse
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

import console_blocks

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_WORDS = 35_000  # of all pages together
OF_CI = ["README.md", "CONTRIBUTING.md", "docs/own_program.md", "docs/scale.md"]
OF_HOSTS = ["SECURITY.md", "docs/how_to.md", "docs/split_learning.md", "docs/three_hosts.md"]
# The blocks that nothing runs, by their first words.
NOT_RUN = {
    "cp -r out/bench": "`make bench` takes an hour; bench_report_test compares two runs",
    "pip install torchtroupe": "it compiles everything; `make test-wheel` installs the wheel",
    "make bundle": "check.sh asks for a GPU; bundle_works_elsewhere makes, unpacks and checks the archive without one",
}
# What a page finds on the host `here`: what serves there, and a command that ends when all is ready.
CALLING_NODE = os.environ.get("TROUPE_CALLING_NODE", "")
BEFORE = {
    "docs/how_to.md": ([f"{CALLING_NODE} --name stage --port 4001 --log-level info --",
                        f"{CALLING_NODE} --name driver --join 127.0.0.1:4001 --log-level info -- 'stage>nobody'"],
                       "until troupe status 127.0.0.1:4001 | grep '1 running'; do :; done"),
}
PRCTL = ctypes.CDLL(None).prctl
PR_SET_PDEATHSIG = 1
SERVES = re.compile(r"troupe (node|split-learning labels) ")
PATIENCE_S = 180
# `scp FILE... HOST:` between the folders of hosts.
SCP = 'scp() { cp "${@:1:$#-1}" "../${!#%:}"; }; '


class NoHosts(Exception):
    """Namespaces can't be made here."""


class Hosts:
    """Network namespaces that find each other by name. tests/hosts/testbed.cpp removes those of a process that was killed."""

    def __init__(self, names, folder):
        self.prefix = f"troupe-test-{os.getpid()}-0-"
        self.folder = folder
        self.serving = {}
        self.names = names
        program = os.environ.get("TROUPE_PROGRAM", ROOT / "build/release/apps/troupe")
        self.environment = {**os.environ, "PATH": f"{pathlib.Path(program).parent}:{os.environ['PATH']}"}
        switch = self.prefix + "switch"
        script = [f"ip netns add {switch}", f"ip -n {switch} link add bridge type bridge mcast_snooping 0",
                  f"ip -n {switch} link set bridge up"]
        for number, name in enumerate(names, 1):
            there = self.prefix + name
            script += [f"ip netns add {there}", f"ip -n {there} link set lo up",
                       f"ip -n {switch} link add {name} type veth peer name eth0 netns {there}",
                       f"ip -n {switch} link set {name} master bridge up",
                       f"ip -n {there} addr add 10.77.0.{number}/24 dev eth0", f"ip -n {there} link set eth0 up"]
        known = "".join(f"10.77.0.{number} {name}\n" for number, name in enumerate(names, 1))
        try:
            for name in names:
                files = pathlib.Path("/etc/netns", self.prefix + name)
                files.mkdir(parents=True)
                (files / "hosts").write_text("127.0.0.1 localhost\n" + known)
                (files / "nsswitch.conf").write_text("hosts: files\n")
                (folder / name / "build").mkdir(parents=True)
                (folder / name / "build/release").symlink_to(os.environ.get("TROUPE_BUILD", ROOT / "build/release"))
            done = subprocess.run(["bash", "-ec", "\n".join(script)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise OSError(done.stderr)
        except OSError as problem:
            self.remove()
            raise NoHosts(problem) from problem

    def arguments(self, host, command):
        return {"args": ["ip", "netns", "exec", self.prefix + (host or "here"), "bash", "-c", command],
                "cwd": self.folder / (host or "here"), "env": self.environment, "text": True, "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT,
                "preexec_fn": lambda: PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)}  # what serves ends with this program

    def run(self, shown):
        if not SERVES.search(shown.command):
            command = (SCP if shown.command.startswith("scp ") else "exec ") + shown.command
            try:
                done = subprocess.run(**self.arguments(shown.host, command), timeout=PATIENCE_S, check=False)
            except subprocess.TimeoutExpired as late:
                return f"{late}: {late.output}", 124
            return done.stdout, done.returncode
        key = (shown.host, shown.without_comment())
        if key in self.serving and (status := self.end(self.serving.pop(key))):
            return "the same command that ran before", status
        return self.start(key)

    def start(self, key):
        """Starts what serves, and waits until it does."""
        process = self.serving[key] = subprocess.Popen(**self.arguments(key[0], "exec " + key[1]))
        said = ""
        for line in process.stdout:
            said += line
            if re.search(r" listens (on|at) ", line):
                threading.Thread(target=process.stdout.read, daemon=True).start()
                return said, 0
        return said, process.wait() or 1

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        return process.wait(PATIENCE_S)

    def remove(self):
        for process in self.serving.values():
            process.kill()
            process.wait()
        for there in [self.prefix + name for name in [*self.names, "switch"]]:
            subprocess.run(["bash", "-c", f"ip netns del {there}; rm -rf /etc/netns/{there}"], capture_output=True, check=False)


def check_on_hosts(page, commands):
    with tempfile.TemporaryDirectory() as folder:
        hosts = Hosts(sorted({shown.host or "here" for shown in commands}), pathlib.Path(folder))
        try:
            serving, ready = BEFORE.get(page, ([], "true"))
            for command in serving:
                said, status = hosts.start(("here", command))
                if status:
                    print(f"{page}: {command}\nended: {said}", file=sys.stderr)
                    return False
            if serving:
                subprocess.run(**hosts.arguments("here", ready), timeout=PATIENCE_S, check=True)
            return console_blocks.check(page, commands, hosts.run)
        finally:
            hosts.remove()


def check_here(page, commands, printed):
    with tempfile.TemporaryDirectory() as home:
        def run(shown):
            if kept := printed.get(shown.without_comment()):
                return pathlib.Path(kept).read_text(), 0
            done = subprocess.run(["bash", "-c", shown.command], cwd=ROOT, env={**os.environ, "HOME": home}, text=True, timeout=600,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            return done.stdout, done.returncode

        return console_blocks.check(page, commands, run)


def reason_not_to_run(block):
    return next((reason for words, reason in NOT_RUN.items() if block[0].command.startswith(words)), None)


def commands_of(page):
    found = console_blocks.blocks((ROOT / page).read_text())
    return [shown for block in found if block and not reason_not_to_run(block) for shown in block]


def wrong_lists():
    """What the lists above and the pages have too much, or lack."""
    texts = {str(path.relative_to(ROOT)): path.read_text()
             for folder in (".", "docs", "packaging", "packaging/bundle") for path in (ROOT / folder).glob("*.md")}
    words = sum(len(text.split()) for text in texts.values())
    pages = {page: console_blocks.blocks(text) for page, text in texts.items()}
    firsts = [block[0].command for blocks in pages.values() for block in blocks if block]
    with_commands = {page for page in pages if commands_of(page)}
    return [f"{page}: it has a block, and no list of pages.py has the page" for page in with_commands - {*OF_CI, *OF_HOSTS}] + \
        [f"pages.py: {page} has no command" for page in {*OF_CI, *OF_HOSTS} - with_commands] + \
        [f"pages.py: no block begins with {begin}" for begin in NOT_RUN if not any(first.startswith(begin) for first in firsts)] + \
        [f"the pages have {words} words, at most {MOST_WORDS} are allowed"] * (words > MOST_WORDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["hosts", "ci", "check"])
    parser.add_argument("page", nargs="*", help="only these pages")
    parser.add_argument("--printed", nargs=2, action="append", default=[], metavar=("COMMAND", "FILE"),
                        help="what a command printed that ran already: it is not run again")
    options = parser.parse_args()
    wrong = wrong_lists()
    for each in wrong:
        print(each, file=sys.stderr)
    if options.what == "ci":
        good = [check_here(page, commands_of(page), dict(options.printed)) for page in options.page or OF_CI]
    elif options.what == "hosts":
        try:
            good = [check_on_hosts(page, commands_of(page)) for page in options.page or OF_HOSTS]
        except NoHosts as problem:
            print(f"SKIPPED: no hosts can be made here, which takes root and Debian's package iproute2: {problem}")
            return 0
    else:
        good = []
    return 0 if all(good) and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
