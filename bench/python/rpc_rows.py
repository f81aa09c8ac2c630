#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures torch.distributed.rpc from Python on troupe beside TensorPipe, in turns: two processes for each. TensorPipe's threads poll
without an end, so its processes are stopped while troupe's are measured."""
import multiprocessing
import os
import signal
import statistics
import tempfile
import time

import rows
import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torchtroupe.rpc  # noqa: F401  registers the backend

SIDES = ("TROUPE", "TENSORPIPE")
PATIENCE = 60  # seconds for one round; a hang is a failure
small = torch.rand(4)
weight = torch.rand(4, requires_grad=True)
mib, mib_16 = torch.rand(1 << 18), torch.rand(1 << 22)


def add(x):
    return x + 1


def same(x):
    return x


def call():
    rpc.rpc_sync("worker1", add, args=(small,))


def context_backward():
    with dist_autograd.context() as context:
        dist_autograd.backward(context, [rpc.rpc_sync("worker1", torch.mul, args=(weight, weight)).sum()])


def in_flight():
    for each in [rpc.rpc_async("worker1", add, args=(small,)) for _ in range(16)]:
        each.wait()


ROWS = {
    "rpc_small": ("`rpc_sync` of a small tensor", 2, call),
    "rpc_context_backward": ("a context: a call and its backward pass", 2, context_backward),
    "rpc_16_in_flight": ("16 `rpc_async` under way", 3, in_flight),
    "rpc_1mib": ("1 MiB there and back", 1.2, lambda: rpc.rpc_sync("worker1", same, args=(mib,))),
    "rpc_16mib": ("16 MiB there and back", 1.2, lambda: rpc.rpc_sync("worker1", same, args=(mib_16,))),
}


def worker(side, rank, folder, asked):
    torch.set_num_threads(1)
    backend = rpc.BackendType[side]
    options = rpc.backend_registry.construct_rpc_backend_options(backend, init_method=f"file://{folder}/{side}")
    rpc.init_rpc(f"worker{rank}", backend=backend, rank=rank, world_size=2, rpc_backend_options=options)
    if rank == 0:
        for row, seconds in iter(asked.recv, None):
            run, times, until = ROWS[row][2], [], time.perf_counter() + seconds
            run()
            while not times or time.perf_counter() < until:
                begun = time.perf_counter()
                run()
                times.append(time.perf_counter() - begun)
            asked.send(statistics.median(times))
    rpc.shutdown()


def measured(names, rounds, seconds):
    """For each row and side, the median of each round. The first round warms up."""
    found = {(name, side): [] for name in names for side in SIDES}
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        lines = {side: context.Pipe() for side in SIDES}
        processes = {side: [context.Process(target=worker, args=(side, rank, folder, None if rank else lines[side][1]), daemon=True)
                            for rank in (0, 1)] for side in SIDES}
        for each in processes["TROUPE"] + processes["TENSORPIPE"]:
            each.start()

        def let(side, how):
            for each in processes[side]:
                os.kill(each.pid, how)

        def ask(side, question):
            lines[side][0].send(question)
            if not lines[side][0].poll(PATIENCE):
                raise RuntimeError(f"rpc_rows: {side} has no answer to {question} after {PATIENCE} s")
            return lines[side][0].recv()

        try:
            for side in SIDES:
                ask(side, ("rpc_small", 0))  # until both are up
            for number in range(rounds + 1):
                for name in names:
                    for side in SIDES[::1 if number % 2 else -1]:
                        let("TENSORPIPE", signal.SIGSTOP if side == "TROUPE" else signal.SIGCONT)
                        found[name, side].append(ask(side, (name, seconds)))
        finally:
            let("TENSORPIPE", signal.SIGCONT)  # a process that is stopped does not end
        for side in SIDES:
            lines[side][0].send(None)
        for each in processes["TROUPE"] + processes["TENSORPIPE"]:
            each.join(PATIENCE)
    return {key: times[1:] for key, times in found.items()}


def main():
    given = rows.options(__doc__, ROWS)
    if not given.only:
        return
    times = measured(given.only, *((2, 0.05) if given.quick else rows.ROUNDS))
    rows.write([rows.row(name, ROWS[name][0], ROWS[name][1], times[name, "TROUPE"], times[name, "TENSORPIPE"], peer="TensorPipe")
                for name in given.only], given.out)


if __name__ == "__main__":
    main()
