# SPDX-License-Identifier: BSD-3-Clause
"""Backward passes inside backward passes, deep; final callbacks; what a pass says of itself."""
import atexit
import ctypes

import torch
from record import error_of, record
from torch.autograd import Variable

engine = Variable._execution_engine
trace = []


class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.depth == 0:
            return gradient, None
        with torch.enable_grad():
            x = torch.ones(2, requires_grad=True)
            Nested.apply(x, ctx.depth - 1).sum().backward()
        return gradient + x.grad, None


for depth in (1, 59, 200):
    x = torch.ones(2, requires_grad=True)
    Nested.apply(x, depth).sum().backward()
    record(f"depth {depth}", x.grad)


def queue(name, then=None):
    def callback():
        trace.append((name, torch.is_grad_enabled()))
        if then:
            engine.queue_callback(then)

    engine.queue_callback(callback)


x = torch.ones(2, requires_grad=True)
y = x * 2
y.register_hook(lambda gradient: queue("outer", lambda: trace.append("queued by a callback")))
x.register_hook(lambda gradient: trace.append("leaf"))
y.sum().backward()
record("callbacks", trace)
record("outside", error_of(lambda: engine.queue_callback(lambda: None)))
failing = torch.ones(2, requires_grad=True) * 2
failing.register_hook(lambda gradient: engine.queue_callback(lambda: 1 / 0))
record("callback fails", error_of(lambda: failing.sum().backward()))


def inspected(run):
    found = []
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    product = x * w
    loss = product.sum()
    accumulate = torch.autograd.graph.get_gradient_edge(w).node

    def hook(gradient):
        found.append((engine.is_checkpoint_valid(), torch._C._current_graph_task_id() >= 0, torch.is_grad_enabled(),
                      error_of(lambda: found.append(torch._C._will_engine_execute_node(accumulate)))))

    # PyTorch's engine can tell its order only before the first function has run.
    loss.register_hook(lambda gradient: found.append([each.name() for each in torch._C._current_graph_task_execution_order()]))
    product.register_hook(hook)
    with torch.autograd.set_multithreading_enabled(False):
        run(loss, x, w)
    return found


record("in backward", inspected(lambda loss, x, w: loss.backward()))
record("in backward of x", inspected(lambda loss, x, w: loss.backward(inputs=[x])))
record("in grad", inspected(lambda loss, x, w: torch.autograd.grad(loss, [x, w], create_graph=True)))

# A thread of PyTorch's pool lets go of a deep pass some time after that pass has ended. If the interpreter is ending by then, PyTorch
# aborts the process, on either engine. So this process ends without ending the interpreter.
atexit._run_exitfuncs()
ctypes.CDLL(None).exit(0)
