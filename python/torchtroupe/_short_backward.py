# SPDX-License-Identifier: BSD-3-Clause
"""A short way through torch.autograd.backward for what nearly every training step asks: the gradients of one plain scalar.

PyTorch's own function takes 8 us in Python to find that out. What it would check has the same outcome here, and anything else
goes to its code. The function stays PyTorch's object, and only its code changes: tables of __torch_function__, TorchScript and
Dynamo know the function by its identity or by the file of its code."""
import types

import torch

_globals = vars(torch.autograd)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    # This code runs in PyTorch's function, so the names are those of the module torch.autograd.
    if (type(tensors) is not torch.Tensor or has_torch_function((tensors,)) or grad_tensors is not None or inputs is not None
            or grad_variables is not None or not tensors.requires_grad or tensors.numel() != 1
            or not tensors.dtype.is_floating_point or tensors.layout is not torch.strided
            or torch._C._are_functorch_transforms_active()):
        return _torchtroupe_long_backward(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
    # In the order of PyTorch's call: keep_graph, create_graph, inputs, allow_unreachable, accumulate_grad.
    _engine_run_backward((tensors,), (torch.ones_like(tensors),), create_graph if retain_graph is None else retain_graph,
                         create_graph, (), True, True)


def _parameters(function):
    return function.__code__.co_varnames[:function.__code__.co_argcount], function.__defaults__


_changed = None  # PyTorch's function
_long_code = None  # what it had


def install():
    global _changed, _long_code
    found = torch.autograd.backward
    # A program may have put a function of its own there, which calls PyTorch's.
    if _changed or getattr(found, "__globals__", None) is not _globals or _parameters(found) != _parameters(backward):
        return
    _changed, _long_code = found, found.__code__
    _globals["_torchtroupe_long_backward"] = types.FunctionType(_long_code, _globals, "backward", found.__defaults__)
    found.__code__ = backward.__code__.replace(co_filename=_long_code.co_filename, co_firstlineno=_long_code.co_firstlineno)


def uninstall():
    global _changed
    if _changed:
        _changed.__code__ = _long_code
        _changed = None
