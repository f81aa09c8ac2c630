# SPDX-License-Identifier: BSD-3-Clause
"""The tool behind `make mutate`: what it finds in a small program, and that each fault changes what the program does."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import mutate
from candidates import collect

PROGRAM = """
#include <cstdio>
constexpr int compiled = 3 + 4;
static int calls = 0;
static void count() { ++calls; }
static bool small(int x) { return x < 3; }
static int area(int width, int height) {
  if (width == 0) return 7;
  count();
  return width * height;
}
int main() {
  int total = 0;
  for (int i = 0; i < 5; ++i) {
    if (small(i) && !small(i + 1)) continue;
    total += area(i, 2);
  }
  std::printf("%d %d %d\\n", total, calls, compiled);
}
"""


def build(folder, name, text, *options):
    (folder / name).write_bytes(text)
    subprocess.run(["clang++", "-std=c++20", "-w", str(folder / name), "-o", str(folder / "program"), *options], check=True)


def output(folder, **switches):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_MUTANT")}
    done = subprocess.run([str(folder / "program")], env={**environment, **switches}, capture_output=True, timeout=5)
    return done.stdout

TESTS = """
#define BOOST_TEST_MODULE sample
#include <boost/test/unit_test.hpp>
static int twice(int x) { return x + x; }
static int thrice(int x) { return x + x + x; }
BOOST_AUTO_TEST_SUITE(sums)
BOOST_AUTO_TEST_CASE(two) { BOOST_TEST(twice(4) == 8); }
BOOST_AUTO_TEST_CASE(three) { BOOST_TEST(thrice(4) == 12); }
BOOST_AUTO_TEST_SUITE_END()
"""


class MutateTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name).resolve()
        self.source = self.folder / "program.cpp"
        self.source.write_text(PROGRAM)
        self.tree = {"program.cpp": PROGRAM.encode()}
        (self.folder / "compile_commands.json").write_text(json.dumps([{
            "directory": str(self.folder), "file": str(self.source),
            "command": f"clang++ -std=c++20 -o program.o -c {self.source}"}]))
        self.found, self.unread = collect(self.folder, [str(self.source)])

    def test_finds_operators_conditions_statements_returns_and_literals(self):
        changes = [each.what for each in self.found]
        for expected in ("x < 3  ->  x <= 3", "condition width == 0  ->  !(width == 0)", "count();  ->  (left out)",
                         "return width * height  ->  return width * height + 1", "2  ->  2 + 1", "++calls  ->  --calls",
                         "!small(i + 1)  ->  small(i + 1)", "continue  ->  break", "width * height  ->  width + height",
                         "small(i) && !small(i + 1)  ->  small(i) || !small(i + 1)"):
            self.assertIn(expected, changes)
        self.assertEqual(self.unread, [])

    def test_leaves_alone_what_the_compiler_computes(self):
        self.assertFalse([each for each in self.found if "3 + 4" in each.what])

    def test_draws_from_each_folder_or_from_all_files_together(self):
        for folder in ("engine", "messages"):
            (self.folder / folder).mkdir()
            (self.folder / folder / "part.cpp").write_text(PROGRAM)
        (self.folder / "compile_commands.json").write_text(json.dumps([{
            "directory": str(self.folder), "file": str(self.folder / folder / "part.cpp"),
            "command": f"clang++ -std=c++20 -o part.o -c {folder}/part.cpp"} for folder in ("engine", "messages")]))
        for together, folders in ((False, ["engine", "messages"]), (True, ["all files"])):
            given = argparse.Namespace(together=together, seed=1, count=3, sources=["engine/part.cpp", "messages/part.cpp"])
            drawn = mutate.draw(given, self.folder, self.folder)
            self.assertEqual(sorted(drawn), folders)
        paths = {os.path.relpath(each.path, self.folder) for each in drawn["all files"]}
        self.assertEqual(paths, {"engine/part.cpp", "messages/part.cpp"})

    def test_switched_off_the_program_is_as_before_and_each_switch_changes_it(self):
        build(self.folder, "plain.cpp", PROGRAM.encode())
        plain = output(self.folder)
        silent = []
        for number, each in enumerate(self.found):
            text = mutate.mutated(self.folder, {number: each}, self.tree)["program.cpp"]
            build(self.folder, "mutant.cpp", text)
            self.assertEqual(output(self.folder), plain, each.what)
            try:
                if output(self.folder, TROUPE_MUTANT=str(number)) == plain:
                    silent.append(each.what)
            except subprocess.TimeoutExpired:
                pass  # a loop without end
        self.assertEqual(silent, [])

    def test_marks_what_a_process_runs_into(self):
        each = next(each for each in self.found if each.what.startswith("count();"))
        build(self.folder, "mutant.cpp", mutate.mutated(self.folder, {5: each}, self.tree)["program.cpp"])
        reached = self.folder / "reached"
        reached.write_bytes(bytes(8))
        output(self.folder, TROUPE_MUTANTS_REACHED=str(reached))
        self.assertEqual(reached.read_bytes(), bytes([0, 0, 0, 0, 0, 1, 0, 0]))

    def test_tells_which_test_cases_run_into_a_mutant(self):
        self.source.write_text(TESTS)
        found, _ = collect(self.folder, [str(self.source)])
        mutants = {3: next(each for each in found if each.what.startswith("return x + x + x  ->"))}
        text = mutate.mutated(self.folder, mutants, {"program.cpp": TESTS.encode()})["program.cpp"]
        marks = b'#include "' + os.fsencode(mutate.tools / "case_marks.hpp") + b'"\n'
        build(self.folder, "mutant.cpp", text + marks, "-DBOOST_TEST_DYN_LINK", "-lboost_unit_test_framework")
        reached, cases = self.folder / "reached", self.folder / "cases"
        reached.write_bytes(bytes(8))
        output(self.folder, TROUPE_MUTANTS_REACHED=str(reached), TROUPE_MUTANT_CASES=str(cases))
        rows = [line.split("\t") for line in cases.read_text().splitlines()]
        self.assertEqual([(name, numbers.strip()) for name, _, numbers in rows], [("sums/two", ""), ("sums/three", "3")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
