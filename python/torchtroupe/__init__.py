# SPDX-License-Identifier: BSD-3-Clause
"""troupe for Python: its engine in the place of PyTorch's, and torch.distributed.rpc on its nodes. See docs/python.md."""
from .engine import Report, install, report, uninstall
from .rpc import RpcOptions
