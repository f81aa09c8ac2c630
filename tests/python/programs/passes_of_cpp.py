# SPDX-License-Identifier: BSD-3-Clause
"""Passes that C++ code starts, plain and while compiled autograd is on, which takes them apart."""
import ctypes
import os
import pathlib

import torch
from record import error_of, record

compiled = []


def note(graph):
    """Compiles nothing, but tells which graphs were taken apart."""
    compiled.append(sum(node.op == "call_function" for node in graph.graph.nodes) > 0)
    return graph


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


@torch.jit.script
def scripted_backward(loss: torch.Tensor):
    loss.backward()


@torch.jit.script
def scripted_grad(loss: torch.Tensor, x: torch.Tensor):
    return torch.autograd.grad([loss], [x])[0]


def model():
    x = torch.linspace(0.1, 1, 5).requires_grad_()
    return (x.exp() * Square.apply(x)).sum(), x


def started_by_python():
    loss, x = model()
    loss.backward()
    return x.grad


def started_by_an_operator():
    loss, x = model()
    torch.ops.aten._backward(loss, [])
    return x.grad


def started_by_an_operator_for_inputs():
    loss, x = model()
    torch.ops.aten._backward(loss, [x])
    return x.grad


def started_by_a_script():
    loss, x = model()
    scripted_backward(loss)
    return x.grad


def started_by_a_script_for_inputs():
    return scripted_grad(*model())


def fails():
    y = torch.ones(2, requires_grad=True) * 2
    y.register_hook(lambda gradient: 1 / 0)
    torch.ops.aten._backward(y.sum(), [])


def show(name):
    for start in (started_by_python, started_by_an_operator, started_by_an_operator_for_inputs, started_by_a_script,
                  started_by_a_script_for_inputs):
        torch._C._dynamo.compiled_autograd.clear_cache()  # what was compiled before is compiled again
        compiled.clear()
        record(f"{name}, {start.__name__}", start())
        record("compiled", compiled)
    record(f"{name}, error", error_of(fails))


def show_all(name):
    show(name)
    with torch._dynamo.compiled_autograd._enable(note):
        show(f"{name}, compiled")
    show(f"{name}, no more compiled")


show_all("at first")
preloaded = os.environ.get("LD_PRELOAD")
if preloaded:  # passes that C++ starts go through the installed engine then
    ctypes.CDLL(str(pathlib.Path(preloaded).with_name("libtroupe.so"))).troupe_install_engine()
show_all("engine installed")
