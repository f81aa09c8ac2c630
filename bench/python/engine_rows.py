#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures training steps of Python programs on PyTorch's engine and after torchtroupe.install(), in turns, in one process."""
import statistics
import time

import rows
import torch
import torchtroupe
from torch import nn


class LstmLoop(nn.Module):
    """A loop over an LSTM cell of 64 units, as in a recurrent policy: an answer for each step."""
    def __init__(self):
        super().__init__()
        self.cell, self.answer = nn.LSTMCell(16, 64), nn.Linear(64, 1)

    def forward(self, x):
        state, answers = None, []
        for step in x:
            state = self.cell(step, state)
            answers.append(self.answer(state[0]))
        return torch.stack(answers)


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.all, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        query, key, value = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.all(x).chunk(3, -1))
        found = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(found.transpose(1, 2).flatten(2))


def gpt(width=64, layers=6):
    def layer():
        return [Residual(nn.Sequential(nn.LayerNorm(width), Attention(width, 4))),
                Residual(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)))]
    return nn.Sequential(*[each for _ in range(layers) for each in layer()])


def training(model, inputs):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)

    def step():
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    return step


def one_function():
    x = torch.ones(3, requires_grad=True)

    def step():
        y = x * 2
        y.sum().backward()
    return step


def deep(width=64):
    """A residual network of linear layers, as for tables."""
    return nn.Sequential(*[Residual(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)))
                           for _ in range(16)])


ROWS = {
    "py_one_function": ("`y = x * 2; y.sum().backward()`", 1.3, one_function),
    "py_lstm_loop": ("a training step of a loop over an LSTM cell", 1.4, lambda: training(LstmLoop(), torch.randn(64, 8, 16))),
    "py_mlp_deep": ("a training step of 16 residual blocks of linear layers", 1.35, lambda: training(deep(), torch.randn(16, 64))),
    "py_gpt_mini": ("a training step of a transformer of 6 layers", 1.08, lambda: training(gpt(), torch.randn(1, 32, 64))),
}


def shortest(step, seconds):
    """The shortest of many blocks of steps, per step. The time of the thread's processor: a step is one thread that never waits,
    and another process may take the core meanwhile."""
    count = 1
    while True:
        begun = time.thread_time()
        for _ in range(count):
            step()
        if (took := time.thread_time() - begun) > seconds / 50:
            break
        count *= 2
    blocks = [took]
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        begun = time.thread_time()
        for _ in range(count):
            step()
        blocks.append(time.thread_time() - begun)
    return min(blocks) / count


def measured(make, rounds, seconds):
    torch.manual_seed(1)
    step = make()
    times = {torchtroupe.install: [], torchtroupe.uninstall: []}
    for number in range(rounds + 1):  # the first one warms up
        for change in list(times)[::1 if number % 2 else -1]:
            change()
            times[change].append(shortest(step, seconds))
    return [each[1:] for each in times.values()]


def main():
    given = rows.options(__doc__, ROWS)
    torch.set_num_threads(1)
    rounds, seconds = (2, 0.01) if given.quick else rows.ROUNDS
    found = []
    for name in given.only:
        text, bar, make = ROWS[name]
        ours, theirs = measured(make, rounds, seconds)
        found.append(rows.row(name, text, bar, ours, theirs, "us" if statistics.median(ours) < 1e-3 else "ms"))
    rows.write(found, given.out)


if __name__ == "__main__":
    main()
