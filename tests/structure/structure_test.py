# SPDX-License-Identifier: BSD-3-Clause
"""The checks of the layout find what they look for, in small trees."""
import pathlib
import sys
import tempfile
import unittest

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
        self.finds(self.includes(**{"messages/b.hpp": "engine/c.hpp", "engine/c.hpp": "none.hpp"}), "messages/b.hpp", "above")

    def test_an_include_of_a_room_above_is_found(self):
        self.finds(self.includes(**{"actors/low/b.cpp": "actors/high/c.hpp", "actors/high/c.hpp": "none.hpp"}), "actors/low/b.cpp", "high")

    def test_a_room_that_is_not_listed_is_found(self):
        self.finds(self.includes(**{"actors/high/b.cpp": "actors/new/c.hpp", "actors/new/c.hpp": "none.hpp"}), "actors/new", "low, high")

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

    def test_a_public_header_that_reaches_into_a_room_is_found(self):
        tree = self.tree(**{"cmake/TroupeInstall.cmake": "set(troupe_public_headers actors/troupe.hpp)\n",
                            "actors/troupe.hpp": "#include <troupe/actors/node.hpp>\n",
                            "actors/node.hpp": "#include <troupe/actors/low/b.hpp>\n", "actors/low/b.hpp": ""})
        self.finds(structure.check_public(tree), "actors/node.hpp", "actors/low/b.hpp")

    def test_public_headers_that_nobody_names_are_found(self):
        self.finds(structure.check_public(self.tree()), "troupe_public_headers")

    def test_letters_of_two_headers_are_found(self):
        tree = self.tree(**{"engine/b.hpp": "///   AB-1  one.\n", "engine/c.hpp": "///   AB-2  two.\n"})
        self.finds(structure.check_promises(tree), "AB-n", "engine/b.hpp", "engine/c.hpp")

    def test_links_to_nowhere_are_found(self):
        tree = self.tree(**{"README.md": "# A page\n[one](docs/b.md#its-part) [two](#a-page) [web](https://example.org/none)\n",
                            "docs/b.md": "## Its `part`\n"})
        self.assertEqual(structure.check_links(tree), [])
        tree = self.tree(**{"README.md": "[one](docs/none.md)\n"})
        self.finds(structure.check_links(tree), "README.md", "docs/none.md")
        tree = self.tree(**{"README.md": "[one](docs/b.md#none)\n", "docs/b.md": "## Part\n"})
        self.finds(structure.check_links(tree), "b.md", "heading")


if __name__ == "__main__":
    unittest.main()
