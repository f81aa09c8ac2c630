#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests console_blocks.py with documents of its own."""
import contextlib
import io
import subprocess
import unittest

import console_blocks


def run(shown):
    done = subprocess.run(["bash", "-c", shown.command], capture_output=True, text=True, check=False)
    return done.stdout, done.returncode


def check(document):
    """Whether the commands of the document do what it shows, and what is said about that."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        commands = [shown for block in console_blocks.blocks(document) for shown in block]
        return console_blocks.check("README.md", commands, run), said.getvalue()


def block(*lines, language="console"):
    return "\n".join(["text", "", "```" + language, *lines, "```", "more"]) + "\n"


class ConsoleBlocks(unittest.TestCase):
    def test_what_is_printed_passes(self):
        self.assertTrue(check(block("$ echo one; echo two", "one", "two"))[0])

    def test_another_line_fails_by_its_text(self):
        status, said = check(block("$ echo one; echo two", "one", "three"))
        self.assertFalse(status)
        self.assertIn("three", said)
        self.assertIn("two", said)

    def test_a_line_too_many_and_a_line_too_few_fail(self):
        self.assertFalse(check(block("$ echo one; echo two", "one"))[0])
        self.assertFalse(check(block("$ echo one", "one", "two"))[0])

    def test_dots_stand_for_any_lines_and_any_text(self):
        self.assertTrue(check(block("$ seq 1 9; echo end of it", "...", "end ... it"))[0])
        self.assertFalse(check(block("$ echo one; echo two", "...", "one"))[0])
        self.assertTrue(check(block("$ echo one; echo two", "one", "..."))[0])

    def test_numbers_and_blanks_may_differ_but_not_words(self):
        self.assertTrue(check(block("$ echo '20,596 tokens/s   in 1:42'", "7 tokens/s in 0:03"))[0])
        self.assertFalse(check(block("$ echo '20,596 words'", "7 tokens"))[0])

    def test_the_word_after_a_number_stands_for_one_or_several(self):
        for said in "1 thread (x)", "2 threads (x)":
            for shown in "7 threads (x)", "1 thread (x)":
                self.assertTrue(check(block(f"$ echo '{said}'", shown))[0])
        self.assertFalse(check(block("$ echo '1 thread'", "7 threadings"))[0])
        self.assertFalse(check(block("$ echo 'one thread'", "one threads"))[0])

    def test_a_failed_command_fails_whatever_it_prints(self):
        status, said = check(block("$ echo one; false", "one"))
        self.assertFalse(status)
        self.assertIn("status 1", said)

    def test_a_document_without_a_command_fails(self):
        self.assertFalse(check("no block\n" + block("true", language="cpp"))[0])

    def test_a_command_below_which_nothing_is_shown_may_print_anything(self):
        self.assertTrue(check(block("$ echo one", "$ echo two", "two"))[0])
        self.assertFalse(check(block("$ false", "$ echo two", "two"))[0])

    def test_each_line_of_sh_is_a_command(self):
        text = block("true   # a comment", "", "test a = \\", "  b", language="sh")
        self.assertEqual([each.command for each in console_blocks.blocks(text)[0]], ["true   # a comment", "test a = \\\n  b"])
        status, said = check(text)
        self.assertFalse(status)
        self.assertIn("1 of 2 commands", said)

    def test_a_prompt_or_a_comment_names_the_host(self):
        found = console_blocks.blocks(block("h1$ true", "$ true", "$ true  # on h2") + block("true  # on h3", language="sh"))
        self.assertEqual([[each.host for each in one] for one in found], [["h1", "", "h2"], ["h3"]])
        self.assertEqual(found[0][2].without_comment(), "true")


if __name__ == "__main__":
    unittest.main()
