# SPDX-License-Identifier: BSD-3-Clause
"""troupe's engine in the place of PyTorch's."""
import atexit
import ctypes
import dataclasses
import os
import sys

from ._library import native
from . import _short_backward  # after the check of torch's version

# In the order of troupe::engine::left_because.
REASONS = ("refused by PyTorch", "anomaly mode", "a single function", "another device", "compiled autograd")

for _name in ("torchtroupe_install_engine", "torchtroupe_uninstall_engine", "torchtroupe_engine_report"):
    getattr(native, _name).restype = ctypes.c_char_p


@dataclasses.dataclass(frozen=True)
class Report:
    """Backward passes of this process, all threads together."""
    passes: int   # run on troupe's engine
    seconds: float  # spent in them
    left: dict    # passes left to PyTorch's engine since install(), by reason

    def __str__(self):
        reasons = ", ".join(f"{reason}: {count}" for reason, count in self.left.items())
        return (f"{self.passes} backward passes in {self.seconds:.3f} s, and {sum(self.left.values())} left to PyTorch's engine"
                + (f" ({reasons})" if reasons else ""))


def _call(function, *arguments):
    error = function(*arguments)
    if error is not None:
        raise RuntimeError("torchtroupe: " + error.decode())


def install(reuse_memory=True):
    """Runs the backward passes of this process, those that C++ code starts included, on troupe's engine from now on. Passes
    that run on other threads at this moment finish on the engine on which they began. A second call may follow at any time.

    `reuse_memory`: tensors of the CPU of at most 64 KiB are made out of memory that the same thread has freed, at most 8 MiB a
    thread; this saves about 5 % of a step of small functions. Give False to look for errors of memory, or if 8 MiB a thread are
    too much. An allocator that the program has set in C++ stays."""
    dynamo = sys.modules.get("torch._dynamo.compiled_autograd")
    _call(native.torchtroupe_install_engine, bool(getattr(dynamo, "compiled_autograd_enabled", False)), bool(reuse_memory))
    _short_backward.install()
    if os.environ.get("TROUPE_REPORT"):
        atexit.unregister(_print_report)
        atexit.register(_print_report)


def uninstall():
    """Gives the backward passes back to PyTorch's engine."""
    _short_backward.uninstall()
    _call(native.torchtroupe_uninstall_engine)


def report():
    """What ran on which engine so far."""
    counts = (ctypes.c_uint64 * (2 + len(REASONS)))()
    _call(native.torchtroupe_engine_report, counts, ctypes.c_size_t(len(counts)))
    return Report(counts[0], counts[1] / 1e9, {reason: count for reason, count in zip(REASONS, counts[2:]) if count})


def _print_report():
    print(f"troupe: {report()}", file=sys.stderr)
