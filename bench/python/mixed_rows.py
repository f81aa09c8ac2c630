#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures a small call of a Python worker to a C++ node beside one between two Python workers on TensorPipe."""
import multiprocessing
import tempfile
import time

import rows
import torch
import torch.distributed.rpc as rpc
from torchtroupe.examples import cpp_node

PATIENCE = 120  # seconds, for a round


def same(x):
    return x


def answer(orders, call):
    """Runs as many calls as an order says, and answers with the seconds of one; 0 ends."""
    while count := orders.recv():
        begun = time.perf_counter()
        for _ in range(count):
            call()
        orders.send((time.perf_counter() - begun) / count)


def on_tensorpipe(rank, folder, orders):
    torch.set_num_threads(1)
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{folder}/store")
    rpc.init_rpc(f"worker{rank}", backend=rpc.BackendType.TENSORPIPE, rank=rank, world_size=2, rpc_backend_options=options)
    x = torch.ones(8)
    if rank == 0:
        answer(orders, lambda: rpc.rpc_sync("worker1", same, args=(x,)))
    rpc.shutdown()


def on_troupe(given, orders):
    torch.set_num_threads(1)
    with cpp_node.peer_in_cpp(given.troupe, given.library, "stage1") as stage:
        x = torch.ones(8)
        answer(orders, lambda: stage.call("same", x))


def measured(given, rounds, count):
    processes = multiprocessing.get_context("fork")
    (ours, of_ours), (theirs, of_theirs) = processes.Pipe(), processes.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        running = [processes.Process(target=on_troupe, args=(given, of_ours)),
                   *(processes.Process(target=on_tensorpipe, args=(rank, folder, of_theirs)) for rank in (0, 1))]
        for each in running:
            each.start()
        times = {ours: [], theirs: []}
        for number in range(rounds + 1):  # the first one warms up
            for each in (ours, theirs)[::1 if number % 2 else -1]:
                each.send(count)
                if not each.poll(PATIENCE):
                    raise RuntimeError(f"expected {count} calls within {PATIENCE} s")
                times[each].append(each.recv())
        for each in times:
            each.send(0)
        for each in running:
            each.join()
    return [each[1:] for each in times.values()]


def main():
    given = rows.options(__doc__, ["mixed_call"], cpp_node.add_words)
    if not given.only:
        return
    ours, theirs = measured(given, *((2, 20) if given.quick else (15, 500)))
    text = "a Python worker calls a C++ node, 32 bytes there and back"
    rows.write([rows.row("mixed_call", text, 2, ours, theirs, "us", "TensorPipe")], given.out)


if __name__ == "__main__":
    main()
