#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests bench/report/page.py: figures as text, reports, comparisons, and bench.cmake over benchmarks that are scripts.

  page_test.py PAGE.PY CMAKE BENCH.CMAKE
  page_test.py PAGE.PY --pictures          tests the page and its pictures; skipped without matplotlib"""
import copy
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SCRIPT = pathlib.Path(sys.argv[1])
SPEC = importlib.util.spec_from_file_location("page", SCRIPT)
page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page)

VERSIONS = {"troupe": "0.1.0", "build_type": "Release", "compiler": "Clang 14", "libtorch": "2.11.0", "caf": "0.17.6", "openssl": "3.0"}
ROWS = [
    {"name": "small_call", "unit": "us", "peer": 200, "troupe": 100, "floor": 20, "ratio": 2, "at_least": 1.5, "ok": True, "peer_name": "PyTorch",
     "text": "A small call.", "spread": {"troupe": [98, 104]}},
    {"name": "idle <object>", "unit": "bytes", "peer": None, "troupe": 700, "floor": None, "ratio": 700, "at_most": 512, "ok": False, "note": "a & b"}]
PLOT = {
    "group": "messages", "name": "size", "title": "Calls by <size>", "how_to_read": "Lower is better.", "default_x": 4096,
    "x": {"label": "size", "unit": "bytes", "log": True}, "y": {"label": "time", "unit": "us", "log": True},
    "series": [{"name": "raw TCP & co", "role": "floor", "points": [[1048576, 900], [0, 20], [1024, 22]]},
               {"name": "troupe", "role": "troupe", "points": [[0, 60, 55, 70], [1024, 62, 60, 66], [1048576, 1500, 1400, 1900]]}]}


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "bench_report").symlink_to(SCRIPT)
        self.write("versions.json", VERSIONS)

    def write(self, name, content):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def run_script(self, *arguments, status=0):
        done = subprocess.run([self.folder / "bench_report", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr


class Texts(unittest.TestCase):
    def test_figures_have_three_digits_and_their_unit(self):
        for value, text in ((0.1234, "0.123"), (4.5678, "4.57"), (78.91, "78.9"), (1234567.8, "1,234,568"), (-1234, "-1,234"), (0.00736, "0.0074"), (0, "0")):
            self.assertEqual(page.number_text(value), text)
        for value, unit, text in ((65536, "bytes", "64 KiB"), (1250, "us", "1.25 ms"), (100_000 * (1 + 1e-12), "us", "100 ms"), (0, "us", "0 µs"),
                                  (317, "tokens/s", "317 tokens/s"), (3, "", "3.00"), (0.5, "bytes", "0.500 B")):
            self.assertEqual(page.value_text(value, unit), text)
        self.assertEqual([page.unit_text(unit) for unit in ("us", "us/function", "us p99", "users")], ["µs", "µs/function", "µs p99", "users"])

    def test_roles_have_colours_of_their_own_and_later_curves_other_dashes(self):
        looks = page.looks_of([{"role": role} for role in ("floor", "troupe", "peer", "variant", "variant", "peer", "variant", "variant", "variant")])
        self.assertEqual([colour for colour, _ in looks[:3]], [0, 1, 2])
        self.assertEqual(looks[5][1], looks[2][1])
        self.assertEqual(len(set(looks)), 9)


class Reports(Folder):
    def test_a_row_without_a_bar_is_not_counted(self):
        self.write("out/a.json", [ROWS[0], {**ROWS[0], "name": "no_bar", "at_least": 0}])
        reports = page.read_folder(self.folder / "out")[1]
        text = page.ratios_as_text(reports)
        self.assertRegex(text, r"no_bar .* 2.00 *\n")
        self.assertTrue(text.endswith("\n1 of 1 figures reach their bars\n"))
        self.assertIn('data-label="bar">–</td><td class="ok"></td>', page.row_of_page(reports["a"][1][1]))

    def test_rows_of_all_reports_are_one_table(self):
        for name in "hdab":
            self.write(f"out/{name}.json", [{**ROWS[0], "name": "row_" + name}])
        self.write("out/notes.txt", "no figures")
        self.write("out/scale.tables.json", "{}")
        self.write("out/e.json", ROWS)
        text = page.ratios_as_text(page.read_folder(self.folder / "out")[1])
        self.assertEqual(re.findall("row_.", text), ["row_a", "row_b", "row_d", "row_h"])
        self.assertRegex(text, r"\ne\n  small_call +us +20.0 +200 +100 +2.00  >= 1.5 +ok\n")
        self.assertRegex(text, r"<= 512 +short\n")
        self.assertTrue(text.endswith("\n5 of 6 figures reach their bars\n"))

    def test_what_is_missing_or_malformed_is_named(self):
        self.assertIn("there is no folder", self.run_script("--folder", self.folder / "none", status=2))
        self.write("out/machine.json", {"cpu": 3})
        self.assertIn("has no figures", self.run_script("--folder", self.folder / "out", status=2))
        self.write("out/a.json", ROWS)
        self.assertIn("machine.json' is no machine", self.run_script("--folder", self.folder / "out", status=2))
        wrong_rows = [[{**ROWS[0], **each}] for each in ({"name": 3}, {"note": None}, {"spread": {"troupe": [1]}}, {"at_least": None})]
        for text in ('[{"name": ', "{}", '[{"name": "call"}]', "[3]", "", *wrong_rows):
            self.write("out/b.json", text)
            self.assertIn("b.json' is no ", self.run_script("--folder", self.folder / "out", status=2))

    def test_what_no_picture_can_show_is_refused_with_the_name_of_the_plot(self):
        def refused(why, **changed):
            file = self.write("bad.curves.json", [{**PLOT, "series": [{"name": "a", "role": "peer", "points": [[1, 2]], **changed}]}])
            with self.assertRaisesRegex(page.Problem, r"bad.curves.json.*plot messages/size: " + why):
                page.read_checked(file, page.check_plots, "list of curves")

        refused("the role is 'other'", role="other")
        refused("a point is ", points=[[1, 2, 3]])
        refused("there is no point in it", points=[])
        refused("'a' has a value below 0", points=[[-1, 2]])
        refused("'a' has a value below 0", points=[[1, -2]])
        refused("a point is ", points=[[1, "x"]])
        refused("a point is ", points=[[1, None]])
        refused("a point is ", points=[[1, float("nan")]])
        refused("expected texts", name=3)

    def test_the_machine_is_recorded(self):
        self.write("root/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU 9000\nflags\t\t: fpu hypervisor avx\n\nprocessor\t: 1\nmodel name\t: Other\n")
        self.write("root/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 5 kB\n")
        self.write("root/proc/loadavg", "1.25 0.50 0.10 2/300 4711\n")
        self.write("root/etc/os-release", 'NAME="Some"\nPRETTY_NAME="Some System 12"\n')
        known = dict(page.facts_of({**page.this_machine(VERSIONS, self.folder / "root"), "quick": True, "commit": "abc1234"}))
        self.assertRegex(known["measured"], r"^20\d\d-\d\d-\d\d \d\d:\d\d UTC, quick run$")
        self.assertEqual([known[name] for name in ("processor", "memory", "load before", "troupe")],
                         ["Some CPU 9000, 2 cores, virtual machine", "16.0 GiB", "1.25", "0.1.0 (abc1234), Release, Clang 14"])
        self.assertIn("Some System 12, Linux ", known["system"])
        bare = dict(page.facts_of({**page.this_machine(VERSIONS, self.folder / "none"), "quick": False, "commit": ""}))
        self.assertFalse({"processor", "memory", "clock governor"} & set(bare))
        self.run_script("--machine", "--quick", "--commit", "abc1234", "--folder", self.folder / "out")
        found = page.read_json(self.folder / "out/machine.json")
        self.assertTrue(found["cores"] > 0 and found["quick"] and found["commit"] == "abc1234" and found["libtorch"] == "2.11.0")


class Comparisons(Folder):
    def verdict(self, before, after, upper=False, old_spread=(), new_spread=()):
        def row(ratio, spread):
            return {"ratio": ratio, "is_upper": upper, "peer": 200, "troupe": 100, "spread": dict(spread)}

        return page.compared(row(before, old_spread), row(after, new_spread), 0.05)[1:]

    def test_a_change_is_worse_or_better_by_the_direction_of_the_bar(self):
        for before, after, upper, verdict in ((2, 1.5, False, "worse"), (2, 2.5, False, "better"), (2, 1.5, True, "better"), (2, 2.5, True, "worse"),
                                              (2, 2, False, "same"), (2, 1.91, False, "same"), (2, 1.89, False, "worse"),
                                              (0, 1, True, "worse"), (0, 0, True, "same"), (1, 0, True, "better")):
            self.assertEqual(self.verdict(before, after, upper)[1], verdict)

    def test_a_ratio_that_could_not_be_computed_reaches_no_bar(self):
        self.write("out/a.json", [{**row, "ratio": None} for row in ROWS])
        self.assertIn("\n0 of 2 figures", self.run_script("--compare", self.folder / "out", self.folder / "out", status=1) + page.ratios_as_text(
            page.read_folder(self.folder / "out")[1]))
        for upper in (False, True):
            self.assertEqual(self.verdict(2, float("nan"), upper)[1], "worse")

    def test_the_spreads_of_both_runs_add_up(self):
        old, new = {"peer": [190, 210], "troupe": [95, 105]}, {"troupe": [97, 103]}  # 5 % of each, 3 %
        noise, verdict = self.verdict(2, 1.76, False, old, new)
        self.assertAlmostEqual(noise, 0.13)
        self.assertEqual(verdict, "same")
        self.assertEqual(self.verdict(2, 1.72, False, old, new)[1], "worse")
        self.assertAlmostEqual(self.verdict(2, 2, False, {"peer": [100, 300], "ratio": [1.8, 2.2]})[0], 0.1)

    def test_two_runs_are_compared(self):
        old, new = self.folder / "old", self.folder / "new"
        slower = [{**ROWS[0], "ratio": 1.4, "troupe": 140}, {**ROWS[1], "name": "fresh"}]
        self.write("old/suite.json", ROWS)
        self.write("new/suite.json", slower)
        text = self.run_script("--compare", old, new, status=1)
        self.assertRegex(text, r"suite/small_call +us +100 -> 140 +2 -> 1.4 +-30.0% +5.1%  worse\n")
        self.assertIn("1 worse, 0 better, 0 the same within the noise; 1 only in OLD, 1 only in NEW\n", text)
        self.assertNotIn("small_call", self.run_script("--compare", old, new, "--noise", "60"))
        self.assertIn("small_call", self.run_script("--compare", old, new, "--noise", "60", "--all"))
        self.assertIn("1 better", self.run_script("--compare", new, old))
        self.write("later.json", slower)
        self.run_script("--compare", old / "suite.json", self.folder / "later.json", status=1)
        self.run_script("--compare", old, new / "suite.json", status=1)
        self.assertIn("none.json", self.run_script("--compare", old, old / "none.json", status=2))

    def test_different_machines_and_quick_runs_are_told(self):
        old = {**page.this_machine(VERSIONS, self.folder), "quick": False, "commit": ""}
        self.assertEqual(page.differences_of(old, {**old, "date": "today", "load": 3}), "")
        self.assertEqual(page.differences_of(old, None), "")
        text = page.differences_of(old, {**old, "cpu": "B", "quick": True})
        self.assertEqual(text, "note: figures of a quick run are rough\nnote: processor differs: OLD not known; NEW B\n")


class Runs(Folder):
    def test_the_page_is_made_whatever_benchmarks_fail(self):
        def benchmark(name, text):
            self.write("programs/" + name, "#!/bin/sh\necho \"$0 $*\" >> calls\n" + text).chmod(0o755)

        def run_all(*arguments):
            self.write("calls", "")
            cmake, script = sys.argv[2:4]
            done = subprocess.run([cmake, f"-DFOLDER={self.folder}/programs", *arguments, "-P", script], cwd=self.folder, capture_output=True,
                                  text=True, timeout=120, check=False)
            calls = (self.folder / "calls").read_text().replace(f"{self.folder}/programs/", "").splitlines()
            return done.returncode, done.stdout + done.stderr, calls

        (self.folder / "programs").mkdir()
        (self.folder / "programs/bench_report").symlink_to(SCRIPT)
        self.write("programs/versions.json", VERSIONS)
        self.write("rows.json", ROWS)
        benchmark("some_bench", "mkdir -p out/bench out/bench-quick; cp rows.json out/bench/suite.json; cp rows.json out/bench-quick/suite.json")
        benchmark("hosts_bench", "echo 'hosts_bench: SKIPPED: no hosts' >&2; exit 1")
        status, text, calls = run_all()
        self.assertEqual(status, 0, text)
        self.assertEqual(calls, ["hosts_bench --minutes 0.5", "hosts_bench --wire", "some_bench "])
        self.assertFalse(json.loads((self.folder / "out/bench/machine.json").read_text())["quick"])
        self.assertRegex(text, r"written to out/bench/report.html|no page without matplotlib: ")

        self.write("out/bench-quick/stale.json", "[]")
        benchmark("scale_model", "")
        benchmark("bad_bench", "echo broken >&2; exit 3")
        status, text, calls = run_all("-DQUICK=ON")
        self.assertNotEqual(status, 0)
        self.assertIn("-- bad_bench: ended with status 3", text)
        programs = ["bad_bench", "hosts_bench", "hosts_bench --wire", "hosts_bench --security", "some_bench", "scale_model"]
        self.assertEqual(calls, [f"{each} --quick --out out/bench-quick" for each in programs])
        self.assertIn("1 of 2 figures", text)
        self.assertTrue(json.loads((self.folder / "out/bench-quick/machine.json").read_text())["quick"])
        self.assertFalse((self.folder / "out/bench-quick/stale.json").exists())


class Pages(Folder):
    def test_marks_of_an_axis_are_round(self):
        for values, unit, log, wide, texts in (
                ([1, 5000], "", True, False, "1 | 10 | 100 | 1,000"), ([1, 3e6], "", True, False, "1 | 10 | 100 | 1 k | 10 k | 100 k | 1 M"),
                ([3, 100], "", True, False, "5 | 10 | 20 | 50 | 100"), ([0.5, 20_000], "us", True, False, "1 µs | 10 µs | 100 µs | 1 ms | 10 ms"),
                ([0, 5000], "us", False, False, "0 | 1 | 2 | 3 | 4 | 5"), ([2, 4, 8, 16], "", True, False, "2 | 4 | 8 | 16"),
                ([1, 64], "KiB", True, False, "1 KiB | 2 KiB | 4 KiB | 8 KiB | 16 KiB | 32 KiB | 64 KiB"), ([0, 10, 3000], "", True, False, "0 | 10 | 100 | 1,000"),
                ([140, 143], "", False, True, "0 | 50 | 100 | 150"), ([0, 99.9], "", False, False, "0 | 20 | 40 | 60 | 80 | 100"),
                ([30, 900], "", True, True, "20 | 50 | 100 | 200 | 500 | 1,000")):
            self.assertEqual(" | ".join(page.axis_of({"label": "x", "unit": unit, "log": log}, values, wide)[3].values()), texts)
        for values, log in (([1e-6, 1e12], True), ([1, 64 << 20], True), ([30, 45], True), ([0.3], False)):
            self.assertTrue(1 < len(page.axis_of({"label": "x", "unit": "bytes", "log": log}, values, True)[3]) < 10)
        self.assertEqual(page.axis_of({"label": "time", "unit": "us"}, [0, 5000], False)[0], "time (ms)")
        self.assertEqual(page.axis_of({"label": "time", "unit": "us", "log": True}, [1, 5000], False)[0], "time")

    def test_one_value_alone_is_between_the_ends(self):
        for log in (True, False):
            _, low, high, _ = page.axis_of({"label": "x", "unit": "", "log": log}, [7], False)
            self.assertTrue(low < 7 < high)
        with self.assertRaises(page.Problem):
            page.axis_of({"label": "x", "unit": "", "log": True}, [0], False)

    def page_with(self, **changed):
        self.write("out/suite.json", ROWS)
        plots = [{**copy.deepcopy(PLOT), "group": group, "title": group + " <title>", **changed} for group in ("zoo", "scheduling", "messages")]
        self.write("out/suite.curves.json", plots)
        self.run_script("--folder", self.folder / "out")
        return (self.folder / "out/report.html").read_text()

    def test_the_page_is_whole_and_asks_for_nothing_from_elsewhere(self):
        text = self.page_with()
        xml.etree.ElementTree.fromstring(text)
        for each in ("http", "<script", "<link", "@import", "src="):
            self.assertNotIn(each, text)
        self.assertEqual(len(re.findall("<figure>", text)), 3)
        self.assertEqual(len(set(re.findall(r'\bid="([^"]*)"', text))), len(re.findall(r'\bid="', text)))

    def test_rows_and_groups_are_in_their_order(self):
        text = self.page_with()
        for each in ("<code>small_call</code><small>A small call.</small>", "idle &lt;object&gt;", "a &amp; b", "100<small>98.0 – 104</small>", "peer: PyTorch; ",
                     "1 of 2 figures reach their bars. Short: <code>idle &lt;object&gt;</code>.", '≥ 1.5</td><td class="ok">', '≤ 512</td><td class="short">',
                     "The machine was not recorded"):
            self.assertIn(each, text)
        offsets = [text.index(f">{group}</h2>") for group in ("Messages", "Scheduling", "Zoo")] + [text.index("<h3>zoo &lt;title&gt;</h3>")]
        self.assertEqual(offsets, sorted(offsets))
        self.run_script("--machine", "--quick", "--folder", self.folder / "out")
        self.assertIn("Figures of a quick run are rough", self.page_with())

    def test_a_picture_has_axes_curves_bands_and_tips_in_colours_of_the_page(self):
        text = self.page_with(name="n")
        picture = re.search(r'<svg [^>]*class="plot".*?</svg>', text, re.DOTALL)[0]
        for each in (">1 MiB</text>", ">100 µs</text>", ">size</text>", ">time</text>", "default: 4 KiB", "raw TCP &amp; co\nsize: 0 bytes\ntime: 20 µs",
                     "troupe\nsize: 1 KiB\ntime: 62 µs (60 µs to 66 µs)", 'aria-label="messages &lt;title&gt;"'):
            self.assertIn(each, picture.replace("</title>", "\n</title>"))
        self.assertEqual(picture.count('class="hit"'), 6)
        self.assertEqual(len(re.findall(r"fill-opacity: 0.2", picture)), 1)
        self.assertFalse(re.findall(r"(?:fill|stroke|color): #", picture))
        self.assertNotIn("DejaVu", picture)
        xs = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', picture)]
        self.assertEqual(xs, sorted(xs[:3]) * 2)
        self.assertEqual(xs[2], page.RIGHT)

    def test_texts_are_shown_as_they_are(self):
        text = self.page_with(title=r"a\d \g<x>", x={"label": r"$\frac$ of $x$", "unit": "bytes", "log": True})
        for each in (r'aria-label="a\d \g&lt;x&gt;"', r">$\frac$ of $x$</text>"):
            self.assertIn(each, text)

    def test_a_name_of_a_default_without_space_is_in_the_legend(self):
        self.assertIn(">default of short: 4 KiB</text>", self.page_with(default_name="short"))
        text = self.page_with(default_name="middleman.max-consecutive-reads-of-a-connection")
        self.assertIn(">default: 4 KiB</text>", text)
        self.assertIn("default of middleman.max-consecutive-reads-of-a-connection</li>", text)


if __name__ == "__main__":
    wanted = [Texts, Reports, Comparisons, Runs]
    if sys.argv[2] == "--pictures":
        wanted = [Pages]
        if importlib.util.find_spec("matplotlib") is None:
            sys.exit("SKIPPED: the pictures take python3-matplotlib")
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(each) for each in wanted)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
