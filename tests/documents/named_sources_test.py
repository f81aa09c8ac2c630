# SPDX-License-Identifier: BSD-3-Clause
"""named_sources.py finds a file and a function that are not there."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import named_sources


class Places(unittest.TestCase):
    def problems(self, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "actors").mkdir()
            (root / "actors/a.cpp").write_text("void desk::call(int x) {\n  auto y = desk.other(x);\n  return other(y);\n}\n")
            return named_sources.problems(root, text)

    def test_what_is_there_is_fine(self):
        self.assertEqual(self.problems("| step | `actors/a.cpp` | `call()`, `desk::call()` |\nand `actors/a.cpp`"), [])

    def test_a_file_that_is_not_there_is_found(self):
        self.assertIn("line 2: `actors/b.cpp` is not there", self.problems("`actors/a.cpp`\n`actors/b.cpp`"))

    def test_a_function_that_is_not_in_the_files_of_its_row_is_found(self):
        self.assertEqual(self.problems("| step | `actors/a.cpp` | `recall()` |"), ["line 1: `recall()` is not defined in the files of the row"])
        self.assertEqual(self.problems("| step | `actors/a.cpp` | `other()` |"), ["line 1: `other()` is not defined in the files of the row"])

    def test_a_page_without_names_is_found(self):
        self.assertEqual(self.problems("text"), ["the page names no file"])


if __name__ == "__main__":
    unittest.main()
