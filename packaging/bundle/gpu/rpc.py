# SPDX-License-Identifier: BSD-3-Clause
"""Calls and passes of torch.distributed.rpc with tensors of a device, on troupe (the package torchtroupe) and on TensorPipe in
turns: two processes for each, all on one device. Prints rows of a table. Each time is one until the device is idle.
Example: rpc.py --device cuda:0"""
import argparse
import statistics

import rpc_turns
import table
import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc

MIB = 1 << 20
PATIENCE = 30  # seconds for a turn; a hang is a failure


def same(x):
    return x


def twice(x):
    return x * 2


def steps(device, of_mib):
    """By name, what worker 0 runs. `of_mib`: the bytes that stand for a MiB."""
    def synchronize():
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    def call(count, on=device):
        x = torch.rand(count, device=on)

        def run():
            rpc.rpc_sync("worker1", same, args=(x,))
            synchronize()
        return run

    def gradient(x):
        with dist_autograd.context() as context:
            dist_autograd.backward(context, [rpc.rpc_sync("worker1", twice, args=(x * x,)).sum()])
            synchronize()
            return dist_autograd.get_gradients(context)[x]

    def in_context(count):
        x = torch.rand(count, device=device, requires_grad=True)
        return lambda: gradient(x)

    def bits():
        for count in (1, 8, 1000, of_mib // 4 + 1, 4 * of_mib):
            x = torch.rand(count, device=device)
            assert torch.equal(rpc.rpc_sync("worker1", same, args=(x,)), x), f"other elements came back of {count}"
            x.requires_grad_()
            assert torch.equal(gradient(x), 4 * x.detach()), f"the gradient of {count} elements differs"
    made = {"bits": bits, "small": call(8), "small_cpu": call(8, "cpu")}
    made.update({f"call_{mib}": call(mib * of_mib // 4) for mib in CALLS})
    made.update({f"context_{mib}": in_context(mib * of_mib // 4) for mib in CONTEXTS})
    return made


SIDES = {"TENSORPIPE": "TensorPipe", "TROUPE": "troupe"}
CALLS, CONTEXTS = (1, 16, 64, 256), (1, 16)


def micros(seconds):
    return f"{seconds * 1e6:,.0f} µs"


def rows(turns, rounds, seconds, of_mib):
    here = "RPC, two processes on one device: "
    unit = "MiB" if of_mib == MIB else "KiB"

    def compare(name, what, bar, text_of=micros):
        times, failed = {side: [] for side in SIDES}, {}
        for number in range(rounds + 1):
            for side in list(SIDES)[::1 if number % 2 else -1]:
                try:
                    times[side] += [] if side in failed else [turns.ask(side, name, seconds)]
                except RuntimeError as why:
                    failed[side] = str(why)
        middle = {side: statistics.median(each[1:] or [0]) for side, each in times.items()}  # the first one warms up
        text = ", ".join(f"{SIDES[side]} {failed.get(side) or text_of(middle[side])}" for side in SIDES)
        if failed:
            return table.failed(here + what, text)
        ratios = [their / our for our, their in zip(times["TROUPE"][1:], times["TENSORPIPE"][1:])]
        table.figure(here + what, text, statistics.median(ratios), bar)
    for side, side_name in SIDES.items():
        what = f"{here}what {side_name} brings back, and its gradients"
        try:
            turns.ask(side, "bits", 0)
            table.row(what, "same bits")
        except RuntimeError as why:
            table.failed(what, why)
    compare("small", "a call with a small tensor of the device", 3)
    compare("small_cpu", "a call with a small tensor of the CPU", None)
    for mib in CALLS:
        compare(f"call_{mib}", f"a call with {mib} {unit} there and back", 1.2,
                lambda took, mib=mib: f"{2 * mib * of_mib / took / 1e9:.2f} GB/s")
    for mib in CONTEXTS:
        compare(f"context_{mib}", f"context, call and backward with {mib} {unit}", 5)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda:0", help="default: cuda:0")
    options.add_argument("--quick", action="store_true", help="for a moment, with KiB instead of MiB: to see that all works")
    given = options.parse_args()
    device = torch.device(given.device)
    of_mib = 1 << 10 if given.quick else MIB

    def prepare(options, rank):
        if device.type != "cpu":
            options.set_device_map(f"worker{1 - rank}", {device: device})
    with rpc_turns.Turns(lambda: steps(device, of_mib), prepare, PATIENCE) as turns:
        rows(turns, *((1, 0.01) if given.quick else (5, 0.1)), of_mib)


if __name__ == "__main__":
    main()
