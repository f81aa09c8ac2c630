#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests console_blocks.py with documents of its own."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).with_name("console_blocks.py")


def check(document, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "README.md")
        path.write_text(document)
        done = subprocess.run([sys.executable, TOOL, path, *arguments], capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout + done.stderr


def block(*lines, before=""):
    return "\n".join(["text", before, "```console", *lines, "```", "more"]) + "\n"


class ConsoleBlocks(unittest.TestCase):
    def test_what_is_printed_passes(self):
        self.assertEqual(check(block("$ echo one; echo two", "one", "two"))[0], 0)

    def test_another_line_fails_by_its_text(self):
        status, said = check(block("$ echo one; echo two", "one", "three"))
        self.assertEqual(status, 1)
        self.assertIn("three", said)
        self.assertIn("two", said)

    def test_a_line_too_many_and_a_line_too_few_fail(self):
        self.assertEqual(check(block("$ echo one; echo two", "one"))[0], 1)
        self.assertEqual(check(block("$ echo one", "one", "two"))[0], 1)

    def test_dots_stand_for_any_lines_and_any_text(self):
        self.assertEqual(check(block("$ seq 1 9; echo end of it", "...", "end ... it"))[0], 0)
        self.assertEqual(check(block("$ echo one; echo two", "...", "one"))[0], 1)
        self.assertEqual(check(block("$ echo one; echo two", "one", "..."))[0], 0)

    def test_numbers_and_blanks_may_differ_but_not_words(self):
        self.assertEqual(check(block("$ echo '20,596 tokens/s   in 1:42'", "7 tokens/s in 0:03"))[0], 0)
        self.assertEqual(check(block("$ echo '20,596 words'", "7 tokens"))[0], 1)

    def test_the_word_after_a_number_stands_for_one_or_several(self):
        for said in "1 thread (x)", "2 threads (x)":
            for shown in "7 threads (x)", "1 thread (x)":
                self.assertEqual(check(block(f"$ echo '{said}'", shown))[0], 0)
        self.assertEqual(check(block("$ echo '1 thread'", "7 threadings"))[0], 1)
        self.assertEqual(check(block("$ echo 'one thread'", "one threads"))[0], 1)

    def test_a_failed_command_fails_whatever_it_prints(self):
        status, said = check(block("$ echo one; false", "one"))
        self.assertEqual(status, 1)
        self.assertIn("status 1", said)

    def test_a_block_may_say_why_it_is_not_run(self):
        status, said = check(block("$ false", before="<!-- not run: needs a GPU -->") + block("$ echo one", "one"))
        self.assertEqual(status, 0)
        self.assertIn("needs a GPU", said)

    def test_a_reason_counts_for_the_next_block_alone(self):
        text = block("$ false", before="<!-- not run: needs a GPU -->") + block("$ false")
        self.assertEqual(check(text)[0], 1)

    def test_a_document_of_which_nothing_runs_fails(self):
        self.assertEqual(check("no block\n")[0], 1)

    def test_output_that_was_kept_is_used(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as kept:
            kept.write("one\n")
            kept.flush()
            self.assertEqual(check(block("$ false", "one"), "--printed", "false", kept.name)[0], 0)
            self.assertEqual(check(block("$ false", "two"), "--printed", "false", kept.name)[0], 1)


if __name__ == "__main__":
    unittest.main()
