#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The example torchtroupe.examples.service."""
import argparse
import unittest

from torchtroupe.examples import service


class a_service(unittest.TestCase):
    def test_two_clients_train_at_once(self):
        self.assertEqual(service.together(argparse.Namespace(server="server", host="127.0.0.1", certificates="", policy="", steps=5)), 0)

    def test_both_ways_have_the_same_losses(self):
        once, twice = service.compare(1, 2)
        self.assertTrue(len(once) == len(twice) == 1)


if __name__ == "__main__":
    unittest.main()
