# SPDX-License-Identifier: BSD-3-Clause
"""Makes rpc.BackendType.TROUPE known. torchtroupe.rpc, which changes functions of PyTorch's RPC, is imported at the first
use."""
import functools
import sys

import torch.distributed.rpc as rpc
from torch.distributed.rpc import backend_registry


def _options(*given, **named):
    from .rpc import construct_options
    return construct_options(*given, **named)


def _init(*given, **named):
    from .rpc import init_backend
    return init_backend(*given, **named)


def _init_rpc(name, backend=None, rank=-1, world_size=None, rpc_backend_options=None):
    """As PyTorch's. With TROUPE, no wait for the store outlasts rpc_timeout."""
    if getattr(type(backend), "__name__", "") == "BackendType":  # perhaps an enum from before the last registration
        backend = backend_registry.BackendType[backend.name]
    used = sys.modules.get(__package__ + ".rpc")
    is_troupe = getattr(backend, "name", "") == "TROUPE"
    if not is_troupe and not (backend is None and used and isinstance(rpc_backend_options, used.RpcOptions)):
        return _usual_init(name, backend, rank, world_size, rpc_backend_options)
    from .rpc import init_rpc
    return init_rpc(_usual_init, name, backend_registry.BackendType.TROUPE, rank, world_size, rpc_backend_options)


backend_registry.register_backend("TROUPE", _options, _init)
rpc.BackendType = backend_registry.BackendType  # registering has made a new enum
_usual_init, rpc.init_rpc = rpc.init_rpc, functools.wraps(rpc.init_rpc)(_init_rpc)
