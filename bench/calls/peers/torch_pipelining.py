#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains the model of `troupe train` with PyTorch's torch.distributed.pipelining over gloo, and prints one line of JSON
for each schedule.

The model has the layers, sizes and micro-batches of apps/charlm/model.hpp, one process for each stage, one thread in each. The tokens
are random: the time of a step does not depend on them. The line has tokens_per_second, which is the tokens of a step by the median time of
a step, as in the summary of `troupe train`; the schedule; and the first and the last loss, so that one sees that the parameters learn.
"""
import argparse
import json
import math
import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
import torch.nn.functional as functional
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleavedZeroBubble

SCHEDULES = {
    "1f1b": Schedule1F1B,
    "gpipe": ScheduleGPipe,
    "zero-bubble": lambda stage, *rest, **named: ScheduleInterleavedZeroBubble([stage], *rest, **named),
}


def parameter(*shape, deviation):
    return nn.Parameter(torch.randn(*shape) * deviation)


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, shape):
        super().__init__()
        width = shape.width
        deviation = 0.64 / math.sqrt(width)
        into_residual = deviation / math.sqrt(2 * shape.blocks)
        self.heads = shape.heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = parameter(3 * width, width, deviation=deviation)
        self.attention_bias = nn.Parameter(torch.zeros(3 * width))
        self.projection = parameter(width, width, deviation=into_residual)
        self.projection_bias = nn.Parameter(torch.zeros(width))
        self.up = parameter(4 * width, width, deviation=deviation)
        self.up_bias = nn.Parameter(torch.zeros(4 * width))
        self.down = parameter(width, 4 * width, deviation=into_residual)
        self.down_bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        windows, length, width = x.shape
        parts = functional.linear(self.norm1(x), self.attention, self.attention_bias)
        parts = parts.view(windows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        joined = mixed.transpose(1, 2).reshape(windows, length, width)
        y = x + functional.linear(joined, self.projection, self.projection_bias)
        wide = functional.linear(self.norm2(y), self.up, self.up_bias)
        return y + functional.linear(functional.gelu(wide, approximate="tanh"), self.down, self.down_bias)


class Stage(nn.Module):
    """Stage `index` of `shape.stages`: the first has the embedding, the last the norm and the head."""

    def __init__(self, shape, index):
        super().__init__()
        deviation = 0.64 / math.sqrt(shape.width)
        begin, end = (shape.blocks * i // shape.stages for i in (index, index + 1))
        self.tokens = self.head = None
        if index == 0:
            self.tokens = parameter(shape.vocabulary, shape.width, deviation=deviation)
            self.positions = parameter(shape.context, shape.width, deviation=deviation)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(begin, end))
        if index + 1 == shape.stages:
            self.norm = nn.LayerNorm(shape.width)
            self.head = parameter(shape.vocabulary, shape.width, deviation=deviation)
            self.head_bias = nn.Parameter(torch.zeros(shape.vocabulary))

    def forward(self, x):
        if self.tokens is not None:
            x = functional.embedding(x, self.tokens) + self.positions[: x.size(1)]
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else functional.linear(self.norm(x), self.head, self.head_bias)


def loss_of(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def clip(parameters, most):
    """Scales the gradients of all stages so that their norm together is at most `most`."""
    square = sum(each.grad.square().sum() for each in parameters)
    dist.all_reduce(square)
    scale = min(1.0, most / (math.sqrt(square.item()) + 1e-6))
    if scale < 1:
        torch._foreach_mul_([each.grad for each in parameters], scale)


def run_stage(index, shape, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=index, world_size=shape.stages)
    for name in shape.schedule:
        train(index, shape, name)
        dist.barrier()
    dist.destroy_process_group()


def train(index, shape, name):
    torch.manual_seed(index)
    module = Stage(shape, index)
    parameters = list(module.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=shape.learning_rate, fused=True)
    is_last = index + 1 == shape.stages
    windows = shape.batch // shape.micro_batches
    # Without examples the stages would tell each other their shapes by a way that needs numpy.
    hidden = torch.zeros(windows, shape.context, shape.width, requires_grad=True)
    stage = PipelineStage(
        module, index, shape.stages, torch.device("cpu"),
        input_args=(hidden if index else torch.zeros(windows, shape.context, dtype=torch.int64),),
        output_args=(hidden.new_zeros(windows, shape.context, shape.vocabulary) if is_last else hidden,),
    )
    schedule = SCHEDULES[name](stage, shape.micro_batches, loss_fn=loss_of)
    source = torch.Generator().manual_seed(1)
    batch = torch.randint(shape.vocabulary, (shape.batch, shape.context + 1), generator=source)
    inputs, targets = batch[:, :-1].contiguous(), batch[:, 1:].contiguous()
    times, means = [], []
    for _ in range(shape.steps):
        begin = time.perf_counter()
        losses = []
        given = (inputs,) if index == 0 else ()
        schedule.step(*given, **({"target": targets, "losses": losses} if is_last else {}))
        clip(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - begin)
        if is_last:
            means.append(sum(each.item() for each in losses) / len(losses))
    if is_last:
        rate = shape.batch * shape.context / statistics.median(times)
        figures = {"tokens_per_second": rate, "schedule": name, "first_loss": means[0], "last_loss": means[-1]}
        print(json.dumps(figures), flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--steps", type=int, default=30, help="steps to train for")
    options.add_argument("--stages", type=int, default=2, help="processes that the blocks are spread over")
    options.add_argument("--schedule", nargs="+", choices=sorted(SCHEDULES), default=["1f1b"], help="orders of the micro-batches")
    options.add_argument("--vocabulary", type=int, default=86, help="different characters")
    for name, default in (("blocks", 4), ("width", 128), ("heads", 4), ("context", 64), ("batch", 96), ("micro-batches", 12)):
        options.add_argument("--" + name, type=int, default=default, help="as in `troupe train`")
    options.add_argument("--learning-rate", type=float, default=0.0045, help="as in `troupe train`")
    shape = options.parse_args()
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    processes.spawn(run_stage, args=(shape, port), nprocs=shape.stages)


if __name__ == "__main__":
    sys.exit(main())
