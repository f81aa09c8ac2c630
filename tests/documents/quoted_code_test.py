# SPDX-License-Identifier: BSD-3-Clause
"""Tests of quoted_code.py."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import quoted_code

SOURCE = "int main() {\n  // one:begin\n  if (x)\n    f();\n  // one:end\n  // two:begin\n  g();\n  // two:end\n}\n"
ONE = "```cpp\nif (x)\n  f();\n```\n"
TWO = "```cpp\ng();\n```\n"


class QuotedCode(unittest.TestCase):
    def test_a_page_that_quotes_all_snippets_passes(self):
        self.assertEqual(quoted_code.problems(ONE + "text\n" + TWO, SOURCE), [])

    def test_a_snippet_that_the_page_lacks_or_changes_is_named(self):
        for page in ONE, ONE + "```\ng();\n```\n":
            self.assertEqual(len(quoted_code.problems(page, SOURCE)), 1)
            self.assertIn("from 'two:begin'", quoted_code.problems(page, SOURCE)[0])
        self.assertEqual(len(quoted_code.problems(ONE + TWO.replace("g()", "g(1)"), SOURCE)), 2)
        self.assertEqual(len(quoted_code.problems(ONE.replace("  f", " f") + TWO, SOURCE)), 2)

    def test_a_block_that_is_no_snippet_is_named_with_its_line(self):
        told = quoted_code.problems(ONE + TWO + "text\n```cpp\nh();\n```\n", SOURCE)
        self.assertEqual(len(told), 1)
        self.assertIn("PAGE:10: is no snippet", told[0])

    def test_with_a_name_other_code_is_as_it_likes(self):
        self.assertEqual(quoted_code.problems(TWO + "```cpp\nh();\n```\n", SOURCE, "two"), [])
        self.assertIn("does not quote", quoted_code.problems(TWO, SOURCE, "one")[0])
        self.assertIn("'// three:begin'", quoted_code.problems(TWO, SOURCE, "three")[0])

    def test_marks_without_their_other_half_and_names_twice_are_named(self):
        for source in "// one:begin\nf();\n", "f();\n// one:end\n", "// one:end\nf();\n// one:begin\n", SOURCE + SOURCE:
            self.assertIn("expected one line '// one:begin'", quoted_code.problems(ONE, source)[0])

    def test_a_source_without_snippets_fails(self):
        self.assertIn("expected the lines", quoted_code.problems("", "int main() {}\n")[0])

    def test_the_program_names_both_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in ("page.md", ONE), ("a.cpp", SOURCE):
                pathlib.Path(folder, name).write_text(text, encoding="utf-8")
            program = [sys.executable, pathlib.Path(quoted_code.__file__), "page.md", "a.cpp"]
            ran = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 1)
            self.assertIn("page.md: does not quote a.cpp from 'two:begin'", ran.stdout)
            self.assertEqual(subprocess.run([*program, "one"], cwd=folder, check=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
