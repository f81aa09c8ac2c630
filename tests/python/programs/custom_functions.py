# SPDX-License-Identifier: BSD-3-Clause
"""torch.autograd.Function: saved tensors, needs_input_grad, several outputs, once_differentiable, materialized gradients."""
import torch
from record import error_of, record

torch.manual_seed(0)
trace = []


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, factor):
        ctx.save_for_backward(x, weight)
        ctx.factor = factor
        return x * weight * factor

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        trace.append(("scaled", ctx.needs_input_grad, torch.is_grad_enabled()))
        return gradient * weight * ctx.factor, gradient * x * ctx.factor, None


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        trace.append(("split", first is None, second is None))
        total = None
        for factor, gradient in ((2, first), (3, second)):
            if gradient is not None:
                total = gradient * factor if total is None else total + gradient * factor
        return total


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.exp()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return gradient * 5


x = torch.randn(4, 3, requires_grad=True)
w = torch.randn(4, 3, requires_grad=True)
first, second = Split.apply(Scaled.apply(x, w, 3))
(first.sin().sum() + second.cos().sum()).backward()
record("both", (x.grad, w.grad))

x.grad = w.grad = None
first, _ = Split.apply(Scaled.apply(x, w.detach(), 2))
first.sum().backward()
record("one output, one input", (x.grad, w.grad))

record("trimmed", torch.autograd.grad(Scaled.apply(x, w, 2).sum(), [w]))
once = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)[0]
record("once", error_of(lambda: once.sum().backward()))
record("twice freed", error_of(lambda: [Scaled.apply(x, w, 1).sum().backward() for _ in range(1)]))
kept = Scaled.apply(x, w, 1).sum()
kept.backward()
record("second time", error_of(kept.backward))
record("trace", trace)
