# SPDX-License-Identifier: BSD-3-Clause
"""troupe's engine in the place of PyTorch's. See docs/python.md."""
from .engine import Report, install, report, uninstall
from .peers import Module, Peer, Reply, caller, context, function, gradient, peer
