# SPDX-License-Identifier: BSD-3-Clause
"""Passes over functions of an accelerator: two simulated devices, which a library registers with PyTorch."""
import ctypes
import os
import threading
import types

import torch
from record import error_of, record

ctypes.CDLL(os.environ["TROUPE_SIMULATED_DEVICE"]).troupe_install_simulated_device()
torch._register_device_module("simulated", types.SimpleNamespace(device_count=lambda: 2, is_available=lambda: True,
    manual_seed_all=lambda seed: None, _is_in_bad_fork=lambda: False))

first, second = torch.device("simulated:0"), torch.device("simulated:1")


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        seen.append(str(gradient.device))
        return 2 * ctx.saved_tensors[0] * gradient


def leaf(device, shift=0.0):
    return (torch.linspace(0.1, 1, 6) + shift).to(device).requires_grad_()


def on_one_device():
    x = leaf(first)
    (x.exp() * Square.apply(x)).sum().backward()
    return x.grad.cpu()


def over_two_devices_and_the_cpu():
    x, y, z = leaf(first), leaf(second, 0.5), leaf("cpu", 0.25)
    middle = (x.sin() * y.to(first)).cpu() * z.tanh()
    (middle.to(second) * y + y * y).sum().cpu().backward()
    return [each.grad.cpu() for each in (x, y, z)]


def twice_differentiated():
    x = leaf(first)
    gradient, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    return torch.autograd.grad((gradient * gradient).sum(), x)[0].cpu()


def trained():
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    model[0].to(first)
    model[2].to(second)
    inputs, targets = torch.randn(16, 6), torch.randn(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        hidden = model[1](model[0](inputs.to(first)))
        loss = ((model[2](hidden.to(second)) - targets.to(second)) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def with_hooks():
    x = leaf(first)
    y = x * 3
    y.register_hook(lambda gradient: gradient * 2)
    x.register_post_accumulate_grad_hook(lambda tensor: seen.append(str(tensor.grad.device)))
    y.to(second).sum().backward()
    return x.grad.cpu()


def nested():
    x, inner = leaf(first), leaf(second)
    y = x * 2

    def run_another(gradient):
        with torch.enable_grad():
            (inner * inner).sum().backward()
        return gradient

    y.register_hook(run_another)
    y.sum().backward()
    return [x.grad.cpu(), inner.grad.cpu()]


def from_threads():
    results = [None] * 4

    def run(which):
        x = leaf(first if which % 2 else second, which)
        for _ in range(10):
            (x * x.sin()).sum().backward()
        results[which] = x.grad.cpu()

    threads = [threading.Thread(target=run, args=(which,)) for which in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return results


def fails():
    y = leaf(first) * 2
    y.register_hook(lambda gradient: 1 / 0)
    y.to(second).sum().backward()


for run in (on_one_device, over_two_devices_and_the_cpu, twice_differentiated, trained, with_hooks, nested, from_threads):
    seen = []
    record(run.__name__, run())
    record("seen", seen)
record("error", error_of(fails))
record("after an error", on_one_device())
