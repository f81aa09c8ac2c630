# SPDX-License-Identifier: BSD-3-Clause
"""Errors of any type from any place, anomaly mode, and passes after them."""
import threading
import warnings

import torch
from record import error_of, record

warnings.simplefilter("ignore")


class Custom(Exception):
    pass


class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, error):
        ctx.error = error
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ctx.error


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, result):
        ctx.result = result
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return ctx.result


x = torch.ones(3, requires_grad=True)
for error in (Custom("mine"), ValueError("a value"), KeyboardInterrupt(), StopIteration("end"), RuntimeError("plain")):
    record(type(error).__name__, error_of(lambda: Raises.apply(x, error).sum().backward()))
for result in (torch.ones(7), "text", (None, None, None), torch.ones(3, dtype=torch.complex64)):
    record(f"returns {result!r}", error_of(lambda: Wrong.apply(x, result).sum().backward()))
record("left alone", x.grad)
(x * 2).sum().backward()
record("afterwards", x.grad)
try:
    Raises.apply(x, Custom("with its traceback")).sum().backward()
except Custom as error:
    lines = []
    trace = error.__traceback__
    while trace:
        lines.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    record("traceback", lines)

with torch.autograd.detect_anomaly(check_nan=True):
    zero = torch.zeros(2, requires_grad=True)
    record("anomaly", error_of(lambda: (zero.sqrt() * 0).sum().backward()))
    record("anomaly passes", error_of(lambda: zero.exp().sum().backward()))
record("after anomaly", zero.grad)

found = [None] * 4


def run(number):
    y = torch.full((3,), float(number), requires_grad=True)
    for _ in range(20):
        error_of(lambda: Raises.apply(y, Custom("in a thread")).sum().backward())
        y.grad = None
        (y * y).sum().backward()
    found[number] = y.grad


threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
record("threads", found)
