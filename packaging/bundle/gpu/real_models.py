# SPDX-License-Identifier: BSD-3-Clause
"""Trains models of transformers, torchvision and timm, where they are installed, in two processes: one as it is, and one
with LD_PRELOAD=libtroupe_preload.so. Compares the bits of their parameters, then measures training steps in turns. Prints rows
of a table. The first parameters are random. Example: real_models.py --device cuda:0 --preload lib/libtroupe_preload.so"""
import argparse
import ctypes
import hashlib
import importlib.util
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import table
import torch
from torch import nn

PATIENCE = 60  # seconds for an answer


def training(model, loss_of, device):
    model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    return model, step


def language(make, device, quick, layers, width):
    layers, width, tokens = (2, 32, 16) if quick else (layers, width, 128)
    words = torch.randint(256, (2, tokens), device=device)
    return training(make(layers, width), lambda model: model(input_ids=words, labels=words).loss, device)


def images(model, device, quick, batch=8):
    side = 32 if quick else 224
    count = 2 if quick else batch
    shown, known = torch.randn(count, 3, side, side, device=device), torch.arange(count, device=device)
    return training(model, lambda model: nn.functional.cross_entropy(model(shown), known), device)


def encoder(device, quick):
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    x = torch.randn(4, 32, 64, device=device)
    model = nn.TransformerEncoder(layer, 2 if quick else 6, enable_nested_tensor=False)
    return training(model, lambda model: model(x).square().mean(), device)


def gpt_2(device, quick):
    from transformers import GPT2Config, GPT2LMHeadModel

    def make(layers, width):
        return GPT2LMHeadModel(GPT2Config(vocab_size=256, n_layer=layers, n_embd=width, n_head=4))
    return language(make, device, quick, 12, 768)


def llama(device, quick):
    from transformers import LlamaConfig, LlamaForCausalLM

    def make(layers, width):
        return LlamaForCausalLM(LlamaConfig(vocab_size=256, num_hidden_layers=layers, hidden_size=width,
                                            intermediate_size=2 * width, num_attention_heads=4))
    return language(make, device, quick, 8, 512)


def resnet(device, quick):
    from torchvision.models import resnet18, resnet50
    return images((resnet18 if quick else resnet50)(), device, quick)


def mobilenet(device, quick):
    from torchvision.models import mobilenet_v3_large
    return images(mobilenet_v3_large(), device, quick)


def efficientnet(device, quick):
    import timm
    return images(timm.create_model("efficientnet_b0"), device, quick)


def vision_transformer(device, quick):
    import timm
    return images(timm.create_model("vit_small_patch16_224", img_size=32 if quick else 224), device, quick)


# What is made, its package, and whether it is quick enough for --quick.
MODELS = {
    "transformer encoder": ("torch", encoder, True),
    "GPT-2": ("transformers", gpt_2, True), "Llama": ("transformers", llama, False),
    "ResNet": ("torchvision", resnet, True), "MobileNetV3": ("torchvision", mobilenet, False),
    "EfficientNet-B0": ("timm", efficientnet, True), "ViT-S": ("timm", vision_transformer, False),
}


def digest(model):
    total = hashlib.sha256()
    for each in model.state_dict().values():
        each = each.detach().cpu().contiguous()
        total.update((ctypes.c_char * each.nbytes).from_address(each.data_ptr()) if each.nbytes else b"")
    return total.hexdigest()[:16]


class Answers:
    """What one of the two processes does: for each line, one line of JSON."""

    def __init__(self, given):
        self.device, self.quick = torch.device(given.device), given.quick
        self.name, self.step = None, None

    def made(self, name):
        torch.manual_seed(1)
        return MODELS[name][1](self.device, self.quick)

    def bits(self, name):
        """Two digests: some operators of GPUs do not repeat their bits."""
        torch.use_deterministic_algorithms(True, warn_only=True)
        found = []
        for _ in range(2):
            model, step = self.made(name)
            for _ in range(3):
                step()
            found.append(digest(model))
        return found

    def seconds(self, name, seconds):
        if self.name != name:
            self.step = None  # the memory of the last model
            self.name, self.step = name, self.made(name)[1]
        times, until = [], time.perf_counter() + seconds
        while not times or time.perf_counter() < until:
            begun = time.perf_counter()
            self.step()
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            times.append(time.perf_counter() - begun)
        return statistics.median(times)

    def serve(self):
        answers, sys.stdout = sys.stdout, sys.stderr  # models may print
        torch.set_num_threads(1)
        warnings.filterwarnings("ignore")
        for line in sys.stdin:
            what, *arguments = json.loads(line)
            try:
                told = {"value": getattr(self, what)(*arguments)}
            except Exception as failed:
                told = {"failed": f"{type(failed).__name__}: {failed}"}
            print(json.dumps(told), file=answers, flush=True)


class Process:
    def __init__(self, given, **environment):
        self.errors = tempfile.TemporaryFile("w+")
        words = [sys.executable, __file__, "--serve", "--device", given.device, *(["--quick"] if given.quick else [])]
        self.running = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env={**os.environ, **environment})

    def order(self, *what):
        self.running.stdin.write(json.dumps(what) + "\n")
        self.running.stdin.flush()

    def answer(self):
        if not select.select([self.running.stdout], [], [], PATIENCE)[0]:
            raise RuntimeError(f"no answer after {PATIENCE} s")
        line = self.running.stdout.readline()
        if not line:
            raise RuntimeError("the process has ended: " + self.end())
        told = json.loads(line)
        if "failed" in told:
            raise RuntimeError(told["failed"])
        return told["value"]

    def ask(self, *what):
        self.order(*what)
        return self.answer()

    def end(self):
        """What the process has written on stderr."""
        self.running.stdin.close()
        self.running.wait(PATIENCE)
        self.errors.seek(0)
        return self.errors.read()


def compare(names, plain, ours):
    for name in names:
        what = f"{name} ({MODELS[name][0]}), parameters after 3 steps"
        try:
            for each in (plain, ours):
                each.order("bits", name)
            expected, came = plain.answer(), ours.answer()
        except (OSError, RuntimeError) as why:
            table.failed(what, why)
            continue
        if len(set(expected)) > 1:
            table.row(what, "skipped: PyTorch does not repeat its own bits")
        else:
            table.same(what, *expected, *came)
    what = "real models on the preloaded engine"
    reports = [line for line in ours.end().splitlines() if line.startswith("troupe: ")]
    if not reports or reports[-1].startswith("troupe: 0 ") or ", and 0 left " not in reports[-1]:
        table.failed(what, reports[-1] if reports else "no pass ran on troupe's engine")
    else:
        table.row(what, reports[-1].removeprefix("troupe: "))


def measure(names, plain, ours, rounds, seconds):
    for name in names:
        what = f"{name} ({MODELS[name][0]}), a training step"
        try:
            times = {plain: [], ours: []}
            for number in range(rounds + 1):  # the first one warms up
                for each in (plain, ours)[::1 if number % 2 else -1]:
                    times[each].append(each.ask("seconds", name, seconds))
        except (OSError, RuntimeError) as why:
            table.failed(what, why)
            continue
        theirs, own = times[plain][1:], times[ours][1:]
        table.figure(what, f"PyTorch {statistics.median(theirs) * 1e3:.2f} ms, troupe {statistics.median(own) * 1e3:.2f} ms",
                     statistics.median(their / our for their, our in zip(theirs, own)))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda:0", help="default: cuda:0")
    options.add_argument("--preload", help="the path of libtroupe_preload.so")
    options.add_argument("--quick", action="store_true", help="small models for a moment: to see that all works")
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.serve:
        return Answers(given).serve()
    if given.preload is None:
        options.error("expected --preload, the path of libtroupe_preload.so")
    packages = dict.fromkeys(package for package, _, _ in MODELS.values())
    missing = [each for each in packages if not importlib.util.find_spec(each)]
    names = [name for name, (package, _, is_quick) in MODELS.items()
             if package not in missing and (is_quick or not given.quick)]
    # With this setting cuBLAS has the same bits on all streams. It takes more time, so steps are measured without it.
    same_bits = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "TROUPE_REPORT": "1"}
    preloaded = {"LD_PRELOAD": given.preload and os.path.abspath(given.preload)}
    to_compare = Process(given, **same_bits), Process(given, **same_bits, **preloaded)
    to_measure = Process(given), Process(given, **preloaded)
    compare(names, *to_compare)
    measure(names, *to_measure, *((1, 0.01) if given.quick else (4, 0.3)))
    for each in missing:
        table.row(f"models of {each}", "skipped: the package is not installed")


if __name__ == "__main__":
    main()
