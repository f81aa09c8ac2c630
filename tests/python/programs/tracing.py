# SPDX-License-Identifier: BSD-3-Clause
"""The first passes of a process run while their operators are traced, on tensors without elements, or counted."""
import torch
from record import record
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode


def slope(x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad((x.sin() * x).sum(), x)[0]


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.names.append(str(function))
        return function(*arguments, **(keywords or {}))


for mode in ("fake", "symbolic", "real"):
    record(f"traced {mode}", make_fx(slope, tracing_mode=mode)(torch.ones(3)).code)
with FakeTensorMode():
    record("without elements", type(slope(torch.ones(3))).__name__)
with Names() as counted:
    slope(torch.ones(3))
record("operators", counted.names)
record("plain", slope(torch.ones(3)))
