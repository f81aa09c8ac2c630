#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs bench_report over fixed figures, and checks its page and its exit status. Then runs bench.cmake over benchmarks that are scripts.

  bench_report_smoke.py PROGRAM CMAKE BENCH.CMAKE"""
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

VOID = {"meta"}

ROWS = [
    {"name": "small_call", "unit": "us", "peer": 380, "troupe": 100, "floor": 20, "ratio": 3.8, "at_least": 1.5, "ok": True,
     "peer_name": "PyTorch", "spread": {"peer": [370, 390], "troupe": [98, 104]}},
    {"name": "idle <object>", "unit": "bytes", "peer": None, "troupe": 700, "floor": None, "ratio": 700, "at_most": 512, "ok": False,
     "note": "a & b"},
]
PLOTS = [{
    "group": "messages", "name": "size", "title": "Calls by <size>", "how_to_read": "Lower is better.",
    "x": {"label": "size", "unit": "bytes", "log": True}, "y": {"label": "time", "unit": "us", "log": True}, "default_x": 4096,
    "series": [{"name": "raw TCP & co", "role": "floor", "points": [[0, 20], [1024, 22], [1048576, 900]]},
               {"name": "troupe", "role": "troupe", "points": [[0, 60, 55, 70], [1024, 62, 60, 66], [1048576, 1500, 1400, 1900]]}],
}]


class Page(html.parser.HTMLParser):
    """Counts elements, and notes those that are closed in another order than opened."""

    def __init__(self):
        super().__init__()
        self.open, self.counts, self.wrong = [], {}, []

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            self.wrong.append(f"<{tag}> has an attribute twice: {names}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()} closes something else")


def expect(condition, what):
    if not condition:
        sys.exit(f"bench_report_smoke: expected {what}")


def check_page(text):
    page = Page()
    page.feed(text)
    page.close()
    expect(not page.wrong, f"a well-formed page, but: {page.wrong[:3]}")
    expect(not page.open, f"that all elements are closed, but {page.open} are open")
    expect(page.counts.get("figure") == 1, f"one figure, but there are {page.counts.get('figure')}")
    pictures = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    expect(len(pictures) == 3, f"a picture and two pieces of the legend, but there are {len(pictures)}")
    for each in pictures:
        xml.etree.ElementTree.fromstring(each)
    for each in ("small_call", "idle &lt;object&gt;", "a &amp; b", "1 of 2 figures", "default: 4 KiB", ">1 MiB</text>", "2.11"):
        expect(each in text, f"'{each}' in the page")


def check_runs_of_all(program, cmake, script):
    """One benchmark works, one has no hosts, and one fails: the page is made all the same."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "programs").mkdir()
        (folder / "programs/bench_report").symlink_to(program)
        (folder / "rows.json").write_text(json.dumps(ROWS))

        def benchmark(name, text):
            path = folder / "programs" / name
            path.write_text("#!/bin/sh\necho \"$0 $*\" >> calls\n" + text)
            path.chmod(0o755)

        def run_all(*arguments):
            (folder / "calls").write_text("")
            done = subprocess.run([cmake, "-DFOLDER=" + str(folder / "programs"), *arguments, "-P", script], cwd=folder,
                                  capture_output=True, text=True, timeout=60)
            calls = (folder / "calls").read_text().replace(str(folder / "programs") + "/", "").splitlines()
            return done.returncode, done.stdout + done.stderr, calls

        benchmark("some_bench", "mkdir -p out/bench out/bench-quick; cp rows.json out/bench/suite.json; cp rows.json out/bench-quick/suite.json")
        benchmark("hosts_bench", "echo 'hosts_bench: SKIPPED: no hosts' >&2; exit 1")
        status, text, calls = run_all()
        expect(status == 0, f"status 0 although hosts_bench is skipped, but {status}: {text}")
        expect(calls == ["hosts_bench --minutes 1", "hosts_bench --wire", "some_bench "], f"each benchmark once, but: {calls}")
        expect((folder / "out/bench/report.html").is_file(), "a page in out/bench")
        expect(not json.loads((folder / "out/bench/machine.json").read_text())["quick"], "no quick run")

        (folder / "out/bench-quick").mkdir(exist_ok=True)
        (folder / "out/bench-quick/stale.json").write_text("[]")
        benchmark("scale_model", "")
        benchmark("bad_bench", "echo broken >&2; exit 3")
        status, text, calls = run_all("-DQUICK=ON")
        expect(status != 0 and "-- bad_bench: ended with status 3" in text, f"that bad_bench is named, but {status}: {text}")
        options = "--quick --out out/bench-quick"
        expect(calls == ["bad_bench " + options, "hosts_bench " + options, "hosts_bench --wire " + options,
                         "hosts_bench --security " + options, "some_bench " + options,
                         "scale_model " + options], f"all with {options}, but: {calls}")
        expect("1 of 2 figures" in text, "the table of ratios although a benchmark failed")
        expect((folder / "out/bench-quick/report.html").is_file(), "a page in out/bench-quick")
        expect(json.loads((folder / "out/bench-quick/machine.json").read_text())["quick"], "a quick run")
        expect(not (folder / "out/bench-quick/stale.json").exists(), "that the folder of quick runs is emptied first")


def main():
    program, cmake, script = sys.argv[1:]
    check_runs_of_all(program, cmake, script)

    def run(*arguments, status=0):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        expect(done.returncode == status, f"status {status} of {arguments}, but {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    with tempfile.TemporaryDirectory() as name:
        old, new = pathlib.Path(name, "old"), pathlib.Path(name, "new")
        run("--machine", "--commit", "abc1234", "--folder", old)
        facts = json.loads((old / "machine.json").read_text())
        expect(facts["cores"] > 0 and facts["commit"] == "abc1234" and not facts["quick"], f"facts of this machine, not {facts}")
        expect("has no figures" in run("--folder", old, status=2), "that a folder without figures is refused")
        (old / "suite.json").write_text(json.dumps(ROWS))
        (old / "suite.curves.json").write_text(json.dumps(PLOTS))
        expect("1 of 2 figures reach their bars" in run("--folder", old), "a table on the terminal")
        check_page((old / "report.html").read_text())

        run("--machine", "--quick", "--folder", new)
        expect(json.loads((new / "machine.json").read_text())["quick"], "a quick run to be recorded")
        ROWS[0]["ratio"], ROWS[0]["troupe"] = 1.9, 200
        (new / "suite.json").write_text(json.dumps(ROWS))
        expect("suite/small_call" in run("--compare", old, new, status=1), "the row that got worse")
        expect("1 better" in run("--compare", new, old), "a row that got better, and status 0")
        run("--compare", old / "suite.json", new / "suite.json", status=1)
        run("--compare", old, new, "--noise", "60")
        expect("none.json" in run("--compare", old, old / "none.json", status=2), "a missing file to be named")
        (new / "suite.json").write_text("[{")
        expect("suite.json" in run("--compare", old, new, status=2), "a malformed file to be named")


if __name__ == "__main__":
    main()
