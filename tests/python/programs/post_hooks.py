# SPDX-License-Identifier: BSD-3-Clause
"""Hooks after a function: added while it runs, and in passes that have no use for some of its outputs."""
import torch
from record import error_of, record
from torch.autograd import grad

trace = []


class Product(torch.autograd.Function):
    """Returns the gradients of both factors, whatever the pass asks for."""
    before_return = None

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        trace.append(("needs", ctx.needs_input_grad))
        if Product.before_return:
            Product.before_return()
        return gradient * b, gradient * a


def noting(name, factor=1):
    def hook(inputs, outputs):
        trace.append((name, [each is not None for each in inputs], [each is not None for each in outputs]))
        return tuple(None if each is None else each * factor for each in inputs)

    return hook


def leaves():
    return torch.full((3,), 2.0, requires_grad=True), torch.full((3,), 5.0, requires_grad=True)


for has_one_before in (False, True):
    a, b = leaves()
    y = Product.apply(a, b)
    if has_one_before:
        y.grad_fn.register_hook(noting("before", 3))
    Product.before_return = lambda: y.grad_fn.register_hook(noting("added by the function", 2))
    y.sum().backward(retain_graph=True)
    record(f"added by the function, {has_one_before}", (a.grad, b.grad))
    Product.before_return = None
    y.sum().backward()
    record(f"the next pass, {has_one_before}", (a.grad, b.grad))

def adding_once(function_of, hook):
    def unpack(saved):
        if hook not in added:
            added.append(hook)
            function_of().register_hook(hook)
        return saved

    return unpack


added = []
for name, make in (("PyTorch's own", torch.mul), ("Python's", Product.apply)):
    a, b = leaves()
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved, adding_once(lambda: y.grad_fn, noting(name, 2))):
        y = make(a, b)
    y.sum().backward()
    record(f"added by an unpack hook, {name}", (a.grad, b.grad))

a, b = leaves()
y = Product.apply(a, b)
accumulation = torch.autograd.graph.get_gradient_edge(a).node


def adding(node, name, factor):
    def hook(*gradients):
        node.register_hook(noting(name, factor))

    return hook


y.register_hook(adding(y.grad_fn, "added by a tensor hook", 2))
y.grad_fn.register_prehook(adding(y.grad_fn, "added by a pre-hook", 5))
a.register_hook(adding(accumulation, "added to a leaf", 1))
y.sum().backward()
record("added by hooks", (a.grad, b.grad))

a, b = leaves()
y = Product.apply(a, b)
y.grad_fn.register_hook(lambda inputs, outputs: tuple(each * 2 for each in inputs))
record("trimmed", grad(y, [a], torch.ones(3), retain_graph=True))
record("trimmed to the other", grad(y, [b], torch.ones(3), retain_graph=True))
y.backward(torch.ones(3), inputs=[b], retain_graph=True)
record("accumulated", (a.grad, b.grad))
y.grad_fn.register_hook(noting("after the other"))
record("again", grad(y, [a], torch.ones(3), retain_graph=True))

a, b = leaves()
for made in (a * b, torch.addcmul(a, a, b), a @ b):
    made.grad_fn.register_hook(noting(type(made.grad_fn).__name__, 7))
    record("of PyTorch's own", grad(made.sum(), [a]))


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, gradient):
        return gradient, torch.ones(7)


y = Wrong.apply(a, b)
y.grad_fn.register_hook(noting("never called"))
record("wrong, and shown to a hook", error_of(lambda: grad(y, [a], torch.ones(3))))
record("trace", trace)
