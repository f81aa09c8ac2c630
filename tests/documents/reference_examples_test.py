# SPDX-License-Identifier: BSD-3-Clause
"""reference_examples.py finds code of a comment that no source has."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import reference_examples

BLOCK = "/// Like this:\n/// ```cpp\n/// LIBRARY(x) {\n///   add(x, ...);\n/// }\n/// ```\n/// As said.\nint f();\n"


class ReferenceExamples(unittest.TestCase):
    def missing(self, header, source):
        return reference_examples.missing({"a.hpp": header}, ["other();\n", source])

    def test_code_of_a_source_is_fine_however_it_is_broken(self):
        self.assertEqual(self.missing(BLOCK, "LIBRARY(x) { add(x, [] {\n  g(); }); }\n"), [])
        self.assertEqual(self.missing("  /// Ends so: `a(1);\n  /// b(2);`\n", "a(1);\n\nb(2);\n"), [])
        self.assertEqual(self.missing("int f;  // of `{1, 2}`\n", "x{1, 2}\n"), [])

    def test_code_that_no_source_has_is_named(self):
        for header in BLOCK, "/// So: `a(1); b(2);`\n", "int f;  // of `{1, 2}`\n", "  /// `cast<int>(x)`\n":
            found = self.missing(header, "LIBRARY(y) { add(x); }\na(1); c(); b(2);\nx{1,3}\n")
            self.assertEqual(len(found), 1, header)
            self.assertIn("a.hpp: no source has the code", found[0])

    def test_names_and_other_comments_are_no_code(self):
        header = "/// `name`, `get()`, `notify(name, reason)`, `--option x`\n// `a(1);`\nint f();\n"
        self.assertEqual(reference_examples.examples(header), [])

    def test_headers_without_code_fail(self):
        self.assertEqual(len(self.missing("/// `name`\n", "name")), 1)

    def test_the_program_fails_with_what_it_prints(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"a.hpp": BLOCK, "a.cpp": "LIBRARY(x) { add(x, y); }", "b.cpp": ""}.items():
                (pathlib.Path(folder) / name).write_text(text)
            for source, status in ("a.cpp", 0), ("b.cpp", 1):
                ran = subprocess.run([sys.executable, reference_examples.__file__, "--headers", "a.hpp", "--sources", source], cwd=folder,
                                     capture_output=True, text=True)
                self.assertEqual(ran.returncode, status)
                self.assertEqual("a.hpp" in ran.stdout, bool(status))


if __name__ == "__main__":
    unittest.main()
