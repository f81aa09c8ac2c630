#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs bench_report over fixed figures, and checks its page and its exit status.

  bench_report_smoke.py PROGRAM"""
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


def main():
    program = sys.argv[1]

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
