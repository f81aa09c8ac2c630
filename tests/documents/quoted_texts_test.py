# SPDX-License-Identifier: BSD-3-Clause
"""Tests of quoted_texts.py."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).with_name("quoted_texts.py")
SOURCE = 'auto a = "no node listens at " + where + "; is it " "started?"\n  "Or is the port wrong?";\n'


class QuotedTexts(unittest.TestCase):
    def check(self, *rows: str, source: str = SOURCE) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a.cpp").write_text(source, encoding="utf-8")
            page = "\n".join(["| text | why |", "| --- | --- |", *rows, "", "| other | why |", "| --- | --- |", "| `no such` | x |"])
            (root / "page.md").write_text(page, encoding="utf-8")
            ran = subprocess.run([sys.executable, PROGRAM, "page.md", "."], cwd=folder, capture_output=True, text=True, check=False)
            return ran.returncode, ran.stdout

    def test_texts_of_the_sources_pass(self):
        self.assertEqual(self.check("| `no node listens at …` | x |", "| `started?Or is the port …` | x |"), (0, ""))

    def test_another_text_is_named_with_its_line(self):
        code, told = self.check("| `no node listens at …` | x |", "| `no node …dwells at …` | x |")
        self.assertEqual(code, 1)
        self.assertIn("page.md:4: no string of . has 'dwells at'", told)

    def test_a_cell_without_backticks_is_named(self):
        code, told = self.check("| no node listens at | x |")
        self.assertEqual(code, 1)
        self.assertIn("page.md:3: expected a text in backticks", told)

    def test_a_line_of_the_log_without_a_row_is_named(self):
        source = 'log.warn("nodes", [&] { return "node " + name + " has burnt"; });\nlog.debug("nodes", [] { return "ash"; });\n'
        self.assertEqual(self.check("| `node … has burnt` | x |", source=source), (0, ""))
        code, told = self.check("| `ash` | x |", source=source)
        self.assertEqual(code, 1)
        self.assertEqual(told.count("\n"), 1)
        self.assertIn("expected a text of the log line 'node … has burnt' of a.cpp; add a row", told)

    def test_a_page_without_such_a_table_fails(self):
        self.assertEqual(self.check()[0], 1)


if __name__ == "__main__":
    unittest.main()
