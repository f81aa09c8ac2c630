# SPDX-License-Identifier: BSD-3-Clause
"""Forked children, DistributedDataParallel, and a compiled model whose backward pass is one function."""
import multiprocessing
import os
import tempfile

import torch
from record import record

torch.manual_seed(6)
torch.set_num_threads(1)


def child(queue):
    x = torch.arange(4.0, requires_grad=True)
    x.square().sum().backward()
    queue.put(x.grad.tolist())


warm = torch.ones(2, requires_grad=True)
warm.exp().sum().backward()
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
record("forked child", queue.get(timeout=60))
process.join()
record("exit code", process.exitcode)

with tempfile.TemporaryDirectory() as folder:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(3, 4)).square().sum().backward()
        optimizer.step()
    record("data parallel", list(model.parameters()))
    torch.distributed.destroy_process_group()

compiled = torch.compile(lambda a, b: (a @ b).tanh().sum(), backend="aot_eager")
a = torch.randn(3, 4, requires_grad=True)
b = torch.randn(4, 2, requires_grad=True)
compiled(a, b).backward()
record("compiled", (a.grad, b.grad))

# Compiled autograd takes the pass apart and replaces it, so the pass does not run on troupe's engine.
x = torch.randn(3, requires_grad=True)
with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
    (x.sin() * x).sum().backward()
record("compiled autograd", x.grad)
x.grad = None
(x.sin() * x).sum().backward()
record("after compiled autograd", x.grad)

with open("/proc/self/maps", encoding="utf-8") as maps:
    libraries = {line.split()[-1] for line in maps if "libtorch_cpu.so" in line}
record("libtorch is loaded once", len(libraries))
