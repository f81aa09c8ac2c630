#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the service (torchtroupe.examples.service) beside the way with a second forward pass on TensorPipe."""
import argparse

import rows
from torchtroupe.examples import service

if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="for a moment, to see that all works")
    options.add_argument("--out", default="out/bench/python.json", help="the file to which the row is added")
    given = options.parse_args()
    ours, theirs = service.compare(*((2, 2) if given.quick else (9, 20)))
    rows.write([rows.row("service", "a step of full fine-tuning of a small transformer, with the loss on the client", 1.3, ours, theirs,
                         "ms", "second forward")], given.out)
