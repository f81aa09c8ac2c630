# SPDX-License-Identifier: BSD-3-Clause
"""Trains on a device and prints the bits of what came out, one line for each part: two runs, one with LD_PRELOAD=libtroupe_preload.so,
have to print the same. Example: CUBLAS_WORKSPACE_CONFIG=:4096:8 drop_in.py --device cuda:0 (with this setting cuBLAS has the same bits on
all streams). Parts that the device can't do print why.
With --times, prints instead the seconds of backward passes that wait for launches, the shortest of many."""
import argparse
import hashlib
import time
import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.filterwarnings("ignore")


def digest(tensors):
    total = hashlib.sha256()
    for each in tensors:
        total.update(bytes(each.detach().cpu().contiguous().reshape(-1).view(torch.uint8).tolist()))
    return total.hexdigest()[:16]


def trained(model, inputs, loss_of, steps=5, cast=False):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=cast):
            loss = loss_of(model(inputs))
        loss.backward()
        optimizer.step()
    return digest([loss, *model.parameters()])


def square(result):
    return (result[0] if isinstance(result, tuple) else result).float().square().mean()


def transformer(device, cast=False):
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return trained(nn.TransformerEncoder(layer, 2).to(device), torch.randn(4, 32, 64, device=device), square, cast=cast)


def mixed_precision(device):
    return transformer(device, cast=True)


def lstm(device):
    return trained(nn.LSTM(32, 64, 2).to(device), torch.randn(20, 4, 32, device=device), square)


def convolutions(device):
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 8, 3), nn.Flatten(),
                          nn.LazyLinear(10)).to(device)
    return trained(model, torch.randn(4, 3, 28, 28, device=device), square)


def checkpointed(device):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

        def forward(self, x):
            x = checkpoint(lambda y: self.first(y).tanh(), x, use_reentrant=False)
            return checkpoint(lambda y: self.second(y).tanh(), x, use_reentrant=True)
    return trained(Both().to(device), torch.randn(8, 32, device=device), square)


def twice_differentiated(device):
    def penalty(result):
        gradient, = torch.autograd.grad(result.sum(), inputs, create_graph=True)
        return gradient.square().mean() + result.square().mean()
    inputs = torch.randn(8, 32, device=device, requires_grad=True)
    return trained(nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)).to(device), inputs, penalty)


def steps_in_hooks(device):
    model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(4)]).to(device)
    own = {each: torch.optim.SGD([each], lr=0.1) for each in model.parameters()}

    def step(parameter):
        own[parameter].step()
        own[parameter].zero_grad()
    for each in model.parameters():
        each.register_post_accumulate_grad_hook(step)
    inputs = torch.randn(8, 32, device=device)
    for _ in range(5):
        square(model(inputs)).backward()
    return digest(model.parameters())


def device_and_cpu(device):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.here, self.there = nn.Linear(32, 32), nn.Linear(32, 32).to(device)

        def forward(self, x):
            for _ in range(3):
                x = self.there(self.here(x.cpu()).tanh().to(device)).tanh()
            return x
    return trained(Both(), torch.randn(8, 32, device=device), square)


def memory_runs_out(device):
    class AsksTooMuch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            # CUDA's allocator refuses 2^60 elements without trying, and the system may promise 2^44 of them to the CPU.
            return torch.empty(1 << (60 if gradient.device.type == "cpu" else 44), device=gradient.device)
    x = torch.ones(8, device=device, requires_grad=True)
    try:
        AsksTooMuch.apply(x).sum().backward()
        raise AssertionError("expected that the memory does not suffice")
    except (RuntimeError, MemoryError) as error:  # PyTorch has a class of its own for the memory of a GPU
        name = type(error).__name__
    (x * 3).sum().backward()
    return f"{name}, then {digest([x.grad])}"


def several_streams(device):
    if device.type != "cuda":
        return "not run: only on CUDA"
    streams = [torch.cuda.Stream(device) for _ in range(3)]
    weights = [torch.randn(256, 256, device=device, requires_grad=True) for _ in range(6)]
    for _ in range(20):
        values = [torch.randn(256, 256, device=device)]
        for i, weight in enumerate(weights):
            stream = streams[i % 3]
            stream.wait_stream(torch.cuda.current_stream(device))
            for other in streams:
                stream.wait_stream(other)
            with torch.cuda.stream(stream):
                values.append(torch.tanh(values[-1] @ weight / 16) + values[len(values) // 2])
        for stream in streams:
            torch.cuda.current_stream(device).wait_stream(stream)
        square(values[-1]).backward()
        with torch.no_grad():
            for weight in weights:
                weight -= 0.1 * weight.grad
                weight.grad = None
    return digest(weights)


def captured_graph(device):
    if device.type != "cuda":
        return "not run: only on CUDA"
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(8, 64, device=device)
    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad()
            square(model(inputs)).backward()
            optimizer.step()
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad()
    with torch.cuda.graph(graph):
        square(model(inputs)).backward()
        optimizer.step()
    for _ in range(10):
        inputs.copy_(torch.randn(8, 64, device=device))
        graph.replay()
    return digest(model.parameters())


parts = [transformer, mixed_precision, lstm, convolutions, checkpointed, twice_differentiated, steps_in_hooks, device_and_cpu,
         memory_runs_out, several_streams, captured_graph]


def shortest_pass(device, loss):
    def wait():
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    best = float("inf")
    for _ in range(30):
        wait()
        begun = time.perf_counter()
        loss.backward(retain_graph=True)
        wait()
        best = min(best, time.perf_counter() - begun)
    return best


def times(device):
    value = torch.ones(16, device=device, requires_grad=True)
    for _ in range(1000):
        value = value * 1.0001
    model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()) for _ in range(50)]).to(device)
    layers = square(model(torch.randn(8, 64, device=device)))
    print(f"products {shortest_pass(device, value.sum()):.7f}")
    print(f"layers {shortest_pass(device, layers):.7f}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda:0", help="default: cuda:0")
    options.add_argument("--times", action="store_true", help="print times instead of bits")
    given = options.parse_args()
    device = torch.device(given.device)
    torch.set_num_threads(1)
    if given.times:
        return times(device)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    for part in parts:
        torch.manual_seed(1)
        try:
            print(f"{part.__name__}: {part(device)}", flush=True)
        except Exception as failure:
            print(f"{part.__name__}: not run: {type(failure).__name__}: {str(failure).splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
