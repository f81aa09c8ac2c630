# SPDX-License-Identifier: BSD-3-Clause
"""What Doxygen sees of a header (cmake/reference/filter.py)."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "cmake/reference"))
import filter as reference_filter


class Filter(unittest.TestCase):
    def becomes(self, before, after):
        self.assertEqual(reference_filter.prepared(before), after)

    def test_a_comment_behind_a_declaration_is_its_own(self):
        self.becomes("  int a = 1;  // the first\n  /// The second.\n  int b;\n", "  int a = 1;  /**< the first */\n  /// The second.\n  int b;\n")
        self.becomes("  int a;    // one\n            // two\n            // three\n  // why\n",
                     "  int a;    /**< one\n            two\n            three */\n  // why\n")
        self.becomes("  last  // of an enum\n", "  last  /**< of an enum */\n")

    def test_other_comments_stay(self):
        for line in "}  // namespace a", "#include <a>  // for b", "  // why", "  f();", 'x = "a//b";', "  /// one // two":
            self.becomes(line + "\n", line + "\n")

    def test_a_comment_above_a_namespace_or_an_include_is_of_the_file(self):
        for line in "namespace a {", "#include <a>":
            self.becomes(f"x\n\n/// Text.\n/// More.\n{line}\n", f"x\n/// @file\n/// Text.\n/// More.\n{line}\n")
        self.becomes("x\n\n/// Text.\nclass a {\n", "x\n\n/// Text.\nclass a {\n")

    def test_promises_and_terms_are_a_list(self):
        self.becomes("/// All.\n///   AB-1  one\n///         more.\n///   AB-10  two.\n/// End.\nint a;\n",
                     "/// All.\n/// <dl><dt>AB-1</dt><dd>one\n/// more.\n/// </dd><dt>AB-10</dt><dd>two.\n/// </dd></dl>End.\nint a;\n")
        self.becomes("  ///   a, b  one\n  int a;\n", "  /// <dl><dt>a, b</dt><dd>one</dd></dl>\n  int a;\n")
        self.becomes("///   AB-1  one\n///   - two\n///     more\n///   - three\nint a;\n",
                     "/// <dl><dt>AB-1</dt><dd>one\n/// </dd></dl><ul><li>two\n/// more\n/// </li><li>three</li></ul>\nint a;\n")

    def test_code_stays(self):
        code = "/// So:\n/// ```cpp\n/// f() {\n///   g();\n/// }\n/// ```\nint a;\n"
        self.becomes(code, code)

    def test_a_hash_is_left_out(self):
        self.becomes("template <>\nstruct std::hash<a> {\n  f\n};\nint b;\n", "\n\n\n\nint b;\n")


if __name__ == "__main__":
    unittest.main()
