# SPDX-License-Identifier: BSD-3-Clause
"""The checks of the layout find what they look for, in small trees."""
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import structure


class Checks(unittest.TestCase):
    def tree(self, **files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        files = {"actors/CMakeLists.txt": "set(rooms low high)\n", "messages/a.hpp": "", **files}
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return structure.Tree(root)

    def finds(self, problems, *words):
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])

    def includes(self, **files):
        return structure.check_includes(self.tree(**{name: f"#include <troupe/{other}>\n" for name, other in files.items()}))

    def test_includes_that_go_down_are_fine(self):
        self.assertEqual(self.includes(**{"engine/b.hpp": "messages/a.hpp", "actors/high/c.cpp": "actors/low/d.hpp", "actors/low/d.hpp": "engine/b.hpp"}), [])

    def test_an_include_of_a_folder_above_is_found(self):
        self.finds(self.includes(**{"messages/b.hpp": "engine/c.hpp", "engine/c.hpp": "messages/a.hpp"}), "messages/b.hpp", "above")

    def test_an_include_of_a_room_above_is_found(self):
        self.finds(self.includes(**{"actors/low/b.cpp": "actors/high/c.hpp", "actors/high/c.hpp": "messages/a.hpp"}), "actors/low/b.cpp", "high")

    def test_a_room_that_is_not_listed_is_found(self):
        self.finds(self.includes(**{"actors/high/b.cpp": "actors/new/c.hpp", "actors/new/c.hpp": "messages/a.hpp"}), "actors/new", "low, high")

    def test_every_way_to_write_an_include_is_seen(self):
        for line in ('#include "../high/c.hpp"', '#include "troupe/actors/high/c.hpp"', '#  include <troupe/actors/high/c.hpp>',
                     '#include "actors/high/c.hpp"'):
            tree = self.tree(**{"actors/low/b.cpp": line + "\n", "actors/high/c.hpp": ""})
            self.finds(structure.check_includes(tree), "actors/low/b.cpp", "high")

    def test_an_include_that_leaves_the_folders_is_found(self):
        for line in ('#include "tests/support/c.hpp"', "#include <troupe/actors/none.hpp>"):
            self.finds(structure.check_includes(self.tree(**{"engine/b.cpp": line + "\n"})), "engine/b.cpp", "not in messages")

    def test_an_include_of_a_private_header_is_found(self):
        tree = self.tree(**{"engine/b.cpp": "#include <troupe/messages/wire.hpp>\n", "messages/wire.hpp": ""})
        self.finds(structure.check_includes(tree), "engine/b.cpp", "private to messages")

    def test_an_include_of_a_library_that_the_folder_may_not_use_is_found(self):
        tree = self.tree(**{"engine/b.hpp": "# include <caf/actor.hpp>\n", "messages/c.cpp": "#include <caf/actor.hpp>\n"})
        self.finds(structure.check_includes(tree), "engine/b.hpp", "caf/")

    def test_a_header_of_the_network_that_passes_reach_is_found(self):
        tree = self.tree(**{"actors/CMakeLists.txt": "set(rooms network low passes)\n", "actors/network/c.hpp": "",
                            "actors/low/b.hpp": "#include <troupe/actors/network/c.hpp>\n",
                            "actors/passes/d.cpp": "#include <troupe/actors/low/b.hpp>\n"})
        self.finds(structure.check_includes(tree), "actors/low/b.hpp", "passes")

    def test_an_include_of_a_library_that_is_not_linked_is_found(self):
        libraries = ("set(rooms low high)\ntroupe_add_library(first\n  SOURCES b.cpp ${low_sources})\n"
                     "troupe_add_library(second\n  SOURCES ${high_sources}\n  DEPENDS troupe::%s)\n")
        files = {"actors/low/sources.cmake": "add_room(low\n  b.cpp)\n", "actors/high/sources.cmake": "add_room(high\n  c.cpp)\n",
                 "actors/low/b.cpp": "", "actors/low/b.hpp": "", "actors/high/c.cpp": "#include <troupe/actors/low/b.hpp>\n"}
        self.assertEqual(structure.check_includes(self.tree(**files, **{"actors/CMakeLists.txt": libraries % "first"})), [])
        self.finds(structure.check_includes(self.tree(**files, **{"actors/CMakeLists.txt": libraries % "other"})),
                   "actors/high/c.cpp", "second does not link first")

    def test_an_include_of_the_engine_by_the_protocol_is_found(self):
        tree = self.tree(**{"engine/protocol/b.cpp": "#include <troupe/engine/c.hpp>\n", "engine/c.hpp": ""})
        self.finds(structure.check_includes(tree), "engine/protocol/b.cpp")

    def test_a_promise_that_nobody_makes_is_found(self):
        tree = self.tree(**{"engine/b.hpp": "///   AB-1  one.\n", "tests/engine/b_test.cpp": "// AB-1, AB-2\n"})
        self.finds(structure.check_promises(tree), "tests/engine/b_test.cpp", "AB-2")

    def test_a_circle_of_units_is_found_also_by_way_of_sources(self):
        tree = self.tree(**{"engine/b.cpp": "#include <troupe/engine/c.hpp>\n", "engine/b.hpp": "", "engine/c.hpp": "#include <troupe/engine/b.hpp>\n"})
        self.finds(structure.check_includes(tree), "circle", "engine/b -> engine/c")

    def test_a_circle_of_a_room_and_a_public_unit_is_found(self):
        tree = self.tree(**{"actors/node.hpp": "#include <troupe/actors/low/b.hpp>\n", "actors/low/b.hpp": "",
                            "actors/low/c.cpp": "#include <troupe/actors/node.hpp>\n"})
        self.finds(structure.check_includes(tree), "circle", "actors/node", "low")

    def test_an_exception_that_is_no_longer_needed_is_found(self):
        tree = self.tree(**{"messages/messages.hpp": "", "messages/inspect.hpp": ""})
        self.finds(structure.check_includes(tree), "messages/inspect", "exception")

    def installed(self, needed, **files):
        lists = f"set(troupe_public_headers\n  # For programs (all of them)\n  actors/troupe.hpp)\nset(troupe_needed_headers\n  {needed})\n"
        return structure.check_public(self.tree(**{"cmake/installed_headers.cmake": lists, **files}))

    def test_an_installed_header_that_includes_another_one_is_found(self):
        for other in "actors/low/b.hpp", "messages/generated/troupe.pb.h":
            files = {"actors/troupe.hpp": "#include <troupe/messages/a.hpp>\n", "messages/a.hpp": f"#include <troupe/{other}>\n", "actors/low/b.hpp": ""}
            self.finds(self.installed("messages/a.hpp", **files), "messages/a.hpp is installed", other)
        self.assertEqual(self.installed("messages/a.hpp # one\n  actors/low/b.hpp", **{**files, "messages/a.hpp": "#include <troupe/actors/low/b.hpp>\n"}), [])

    def test_an_installed_header_that_nothing_needs_is_found(self):
        self.finds(self.installed("messages/a.hpp", **{"actors/troupe.hpp": ""}), "messages/a.hpp", "take it out")
        files = {"actors/troupe.hpp": "", "messages/a.hpp": "#include <troupe/messages/b.hpp>\n", "messages/b.hpp": "#include <troupe/messages/a.hpp>\n"}
        self.assertEqual(len(self.installed("messages/a.hpp messages/b.hpp", **files)), 2)

    def test_an_installed_header_that_is_not_there_or_named_twice_is_found(self):
        self.finds(self.installed("", **{"messages/a.hpp": ""}), "actors/troupe.hpp", "not there")
        self.finds(self.installed("messages/a.hpp\n  messages/a.hpp", **{"actors/troupe.hpp": "#include <troupe/messages/a.hpp>\n"}), "messages/a.hpp twice")

    def test_public_headers_that_nobody_names_are_found(self):
        self.finds(structure.check_public(self.tree()), "troupe_public_headers")

    def test_letters_of_two_headers_are_found(self):
        tree = self.tree(**{"engine/b.hpp": "///   AB-1  one.\n", "engine/c.hpp": "///   AB-2  two.\n"})
        self.finds(structure.check_promises(tree), "AB-n", "engine/b.hpp", "engine/c.hpp")

    def mirrored(self, **files):
        return structure.check_tests(self.tree(**files))

    def test_a_unit_with_a_test_of_its_name_or_a_line_that_names_one_is_fine(self):
        self.assertEqual(self.mirrored(**{"engine/b.cpp": "", "tests/engine/b_test.cpp": ""}), [])
        line = "// SPDX-License-Identifier: BSD-3-Clause\n// Tests: tests/engine/c_test.cpp, tests/engine/d_test.cpp\n"
        tests = {"tests/engine/c_test.cpp": "", "tests/engine/d_test.cpp": ""}
        self.assertEqual(self.mirrored(**{"engine/b.cpp": "", "engine/b.hpp": line, **tests}), [])
        self.assertEqual(self.mirrored(**{"engine/b.cpp": line, **tests}), [])
        self.assertEqual(self.mirrored(**{"engine/b.hpp": "", "apps/examples/c.cpp": ""}), [])

    def test_a_unit_without_a_test_is_found(self):
        self.finds(self.mirrored(**{"engine/b.cpp": "", "engine/b.hpp": "", "tests/b_test.cpp": ""}), "tests/engine/b_test.cpp", "engine/b.hpp")

    def test_a_header_that_promises_and_has_no_test_is_found(self):
        self.finds(self.mirrored(**{"engine/b.hpp": "///   AB-1  one.\n", "tests/c_test.cpp": "// AB-1\n"}), "tests/engine/b_test.cpp")

    def test_a_named_test_that_is_not_there_is_found(self):
        line = "// SPDX-License-Identifier: BSD-3-Clause\n// Tests: tests/engine/c_test.cpp\n"
        self.finds(self.mirrored(**{"engine/b.hpp": line}), "engine/b.hpp", "tests/engine/c_test.cpp")

    def test_a_line_that_names_tests_in_another_file_is_found(self):
        line = "// SPDX-License-Identifier: BSD-3-Clause\n#pragma once\n// Tests: tests/engine/b_test.cpp\n"
        self.finds(self.mirrored(**{"engine/b.hpp": line, "tests/engine/b_test.cpp": ""}), "engine/b.hpp", "SPDX")

    def test_a_promise_that_no_test_cites_is_found(self):
        files = {"engine/b.hpp": "///   AB-1  one.\n///   AB-2  two.\n", "tests/engine/b_test.cpp": "f();  // AB-1\n///   AB-2  made here.\n"}
        self.finds(self.mirrored(**files), "AB-2", "engine/b.hpp")

    def test_a_promise_in_code_is_not_cited(self):
        files = {"engine/b.hpp": "///   AB-1  one.\n", "tests/engine/b_test.cpp": 'f("AB-1");\n'}
        self.finds(self.mirrored(**files), "AB-1")

    def test_exceptions_of_tests_that_are_no_longer_needed_are_found(self):
        with unittest.mock.patch.dict(structure.UNTESTED, {"engine/b.cpp": "a reason"}):
            self.finds(self.mirrored(**{"engine/b.cpp": "", "tests/engine/b_test.cpp": ""}), "engine/b.cpp", "exception")
        with unittest.mock.patch.dict(structure.UNCITED, {"AB-1": "a reason"}):
            files = {"engine/b.hpp": "///   AB-1  one.\n", "tests/engine/b_test.cpp": "// AB-1\n"}
            self.finds(self.mirrored(**files), "AB-1", "exceptions")
            self.assertEqual(self.mirrored(**{**files, "tests/engine/b_test.cpp": ""}), [])

    def classes(self, text, name="actors/low/b.hpp"):
        with unittest.mock.patch("builtins.print"):
            return structure.check_classes(self.tree(**{name: text}))

    def test_a_class_with_many_functions_or_members_is_found(self):
        functions = "".join(f"  int f{i}(int) const {{ return {{}}; }}\n" for i in range(21))
        members = "".join(f"  std::function<void(int)> m{i}_ = [] {{ go(); }};\n" for i in range(13))
        self.finds(self.classes("class big {\n public:\n" + functions + "};\n"), "big", "21 public functions")
        self.finds(self.classes("class big {\n" + members + "};\n"), "big", "13 members")
        self.finds(self.classes("struct big {\n" + functions + "};\n"), "big", "21 public functions")
        self.assertEqual(self.classes("class small {\n" + functions + " public:\n" + functions[:100].rsplit("\n", 1)[0] + "\n};\n"), [])
        self.assertEqual(self.classes("struct data {\n" + members + "};\nenum class many {\n a };\n"), [])

    def test_what_is_no_function_and_no_member_is_not_counted(self):
        text = "class b {\n public:\n  using a = int(int);\n  enum class c { d };\n  b(const b&) = delete;\n  static constexpr int e = 3;\n" \
               "  struct inner { int f; int g; };\n  b(int x) : x_(x) {}\n private:\n  int x_ TROUPE_GUARDED_BY(m_) = f(2);\n};\n"
        self.assertEqual(list(structure.classes(text))[0], ("b", 1, 1))

    def test_the_public_class_may_be_large(self):
        text = "class node {\n public:\n" + "".join(f"  int f{i}();\n" for i in range(22)) + "};\n"
        self.assertEqual(self.classes(text, "actors/node.hpp"), [])
        self.finds(self.classes(text), "22 public functions", "at most 20")

    def test_links_to_nowhere_are_found(self):
        tree = self.tree(**{"README.md": "# A page\n[one](docs/b.md#its-part) [two](#a-page) [web](https://example.org/none)\n",
                            "docs/b.md": "## Its `part`\n"})
        self.assertEqual(structure.check_links(tree), [])
        tree = self.tree(**{"README.md": "[one](docs/none.md)\n"})
        self.finds(structure.check_links(tree), "README.md", "docs/none.md")
        tree = self.tree(**{"README.md": "[one](docs/b.md#none)\n", "docs/b.md": "## Part\n"})
        self.finds(structure.check_links(tree), "b.md", "heading")

    def test_a_line_of_product_code_that_is_too_long_is_found(self):
        for name in "engine/b.cpp", "devices/b.cu", "python/native/b.hpp", "python/torchtroupe/examples/b.py":
            tree = self.tree(**{name: "\n" + "é" * 128 + "\n" + "é" * 129 + "\n"})
            self.finds(structure.check_columns(tree), f"{name}:3 ", "129 characters", "at most 128")

    def test_lines_that_name_tests_or_are_no_product_code_may_be_long(self):
        long = "x" * 200 + "\n"
        tree = self.tree(**{"engine/b.hpp": "// Tests: " + long, "tests/engine/b_test.cpp": long, "docs/b.md": long,
                            "engine/CMakeLists.txt": long})
        self.assertEqual(structure.check_columns(tree), [])


if __name__ == "__main__":
    unittest.main()
