# SPDX-License-Identifier: BSD-3-Clause
"""troupe's engine in the place of PyTorch's, and rpc.BackendType.TROUPE for torch.distributed.rpc. See docs/python.md."""
from .engine import Report, install, report, uninstall
from .peers import Module, Peer, Reply, caller, context, function, gradient, gradients, peer
from ._library import has_rpc

if has_rpc():
    from . import _backend


def __getattr__(name):  # what only programs with RPC need
    if name == "RpcOptions":
        from .rpc import RpcOptions
        return RpcOptions
    raise AttributeError(f"module 'torchtroupe' has no attribute '{name}'")
