# SPDX-License-Identifier: BSD-3-Clause
"""ctx.input_grad_buffers: which sums a backward may add to in place, and where PyTorch refuses. PyTorch before 2.15 has no such
property; a function then finds nothing."""
import torch
from record import error_of, record

trace = []


def seen(buffers):
    return tuple(None if each is None else each.tolist() for each in buffers)


def function(name, backward=None):
    """A function that doubles each input. `backward(ctx, gradient, buffers)` gives the gradients."""

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.count = len(inputs)
            return sum(each * 2 for each in inputs)

        @staticmethod
        def backward(ctx, gradient):
            buffers = (None,) * ctx.count
            if hasattr(torch.autograd.function.FunctionCtx, "input_grad_buffers"):
                try:
                    buffers = ctx.input_grad_buffers
                except RuntimeError as error:
                    trace.append((name, str(error)))
            trace.append((name, seen(buffers)))
            return backward(ctx, gradient, buffers) if backward else (gradient * 2,) * ctx.count

    return Doubled.apply


def fused(ctx, gradient, buffers):
    if buffers[0] is None:
        return (gradient * 2,) * ctx.count
    buffers[0].add_(gradient * 2)
    return (None,) + (gradient * 2,) * (ctx.count - 1)


def nested(ctx, gradient, buffers):
    with torch.enable_grad():
        for loss in (torch.ones(1, requires_grad=True), (torch.ones(1, requires_grad=True) * 2).exp()):
            trace.append(error_of(loss.backward))
    return (gradient * 2,) * ctx.count


def inner_pass(ctx, gradient, buffers):
    with torch.enable_grad():
        y = torch.ones(2, requires_grad=True)
        (function("inner", fused)(y) + y * 7).sum().backward()
    trace.append(y.grad.tolist())
    return (gradient * 2,) * ctx.count


def leave_a_copy(ctx, gradient, buffers):
    trace.append(buffers[0])
    return (gradient * 2,) * ctx.count


def ask_twice(ctx, gradient, buffers):
    if buffers[0] is not None:
        trace.append(seen(ctx.input_grad_buffers))
    return (gradient * 2,) * ctx.count


def run(name, loss_of, **options):
    x = torch.ones(2, requires_grad=True)
    torch.manual_seed(0)
    error = error_of(lambda: loss_of(x).sum().backward(**options))
    record(name, (error, x.grad, trace))
    trace.clear()


run("two functions", lambda x: function("first", fused)(x * 3) + function("second", fused)(x * 3))
run("one input of two", lambda x: (lambda h: function("first", fused)(h) + function("second", fused)(h))(x * 3))
run("leaf", lambda x: function("first", fused)(x) + function("second", fused)(x))
run("same input twice", lambda x: function("twice", fused)(x, x) + x * 5)
run("expanded", lambda x: function("alone", fused)(x).sum() + x.sum())
run("graph", lambda x: function("alone", fused)(x) + x * 7, create_graph=True)
run("nested", lambda x: function("first", nested)(x) + function("second", nested)(x) + x * 7)
run("nested later", lambda x: (lambda h: function("asks", fused)(h) + h * 7)(function("nests", nested)(x)))
run("inner pass", lambda x: function("outer", inner_pass)(x) + x)
run("held", lambda x: function("first", fused)(x) + function("second", leave_a_copy)(x) + x * 7)
run("twice", lambda x: function("alone", ask_twice)(x) + x * 7)


def with_hooks(register):
    def loss_of(x):
        y = function("hooked", fused)(x)
        register(y)
        return y + x * 7

    return loss_of


run("post-hook", with_hooks(lambda y: y.grad_fn.register_hook(lambda inputs, outputs: None)))
run("pre-hook", with_hooks(lambda y: y.grad_fn.register_prehook(lambda outputs: None)))
run("of another function", with_hooks(lambda y: y.register_hook(
    lambda gradient: trace.append(error_of(lambda: getattr(y.grad_fn, "input_grad_buffers", None))))))

x = torch.ones(2, requires_grad=True)
y = torch.ones(2, requires_grad=True)
(function("inputs", fused)(x, y) + x * 7 + y * 3).sum().backward(inputs=[x])
h = x * 3
record("inputs", (x.grad, y.grad, torch.autograd.grad((function("grad", fused)(h) + h * 7).sum(), h), trace))
trace.clear()

if hasattr(torch.autograd.graph, "set_override_stale_capture_stream"):
    torch.autograd.graph.set_override_stale_capture_stream(True)
    run("stale streams", lambda x: function("alone", fused)(x) + x * 7)
    torch.autograd.graph.set_override_stale_capture_stream(False)

one, two = torch.ones(2, requires_grad=True), {}


def other(ctx, gradient, buffers):
    trace.append(error_of(lambda: two["y"].grad_fn.input_grad_buffers))
    return (gradient * 2,) * ctx.count


if hasattr(torch.autograd.function.FunctionCtx, "input_grad_buffers"):
    two["y"] = function("first")(one)
    (two["y"] + function("second", other)(one) + one * 7).sum().backward()
    record("asked of another", (one.grad, trace, error_of(lambda: two["y"].grad_fn.input_grad_buffers)))
