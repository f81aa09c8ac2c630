#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures torch.distributed.rpc from Python on troupe beside TensorPipe, in turns: two processes for each."""
import rows
import rpc_turns
import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc

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


def measured(names, rounds, seconds):
    """For each row and side, the median of each round. The first round warms up."""
    found = {(name, side): [] for name in names for side in rpc_turns.SIDES}
    with rpc_turns.Turns(lambda: {name: run for name, (_, _, run) in ROWS.items()}) as turns:
        turns.both("rpc_small", 0, 0)  # until both are up
        for number in range(rounds + 1):
            for name in names:
                for side, took in turns.both(name, seconds, number).items():
                    found[name, side].append(took)
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
