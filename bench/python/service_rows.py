#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the service (torchtroupe.examples.service) beside the way with a second forward pass on TensorPipe."""
import rows
from torchtroupe.examples import service

if __name__ == "__main__":
    given = rows.options(__doc__, ["service"])
    if given.only:
        ours, theirs = service.compare(*((2, 2) if given.quick else ()))
        rows.write([rows.row("service", "a step of full fine-tuning of a small transformer, with the loss on the client", 1.3, ours,
                             theirs, "ms", "second forward")], given.out)
