# SPDX-License-Identifier: BSD-3-Clause
"""Prints what a program computed, so that two runs can be compared bit by bit."""
import hashlib
import warnings

import torch

warnings.filterwarnings("ignore", "Failed to initialize NumPy")


def record(name, value):
    print(f"{name}: {_text(value)}", flush=True)


def _text(value):
    if isinstance(value, torch.Tensor):
        if value.is_sparse:
            value = value.coalesce()
            return f"sparse {_text(value.indices())} {_text(value.values())}"
        data = value.detach().contiguous()
        digest = hashlib.sha256(bytes(data.reshape(-1).view(torch.uint8).tolist())).hexdigest()[:16]
        return f"{value.dtype} {tuple(value.shape)} {value.stride()} {digest} grad_fn={type(value.grad_fn).__name__}"
    if isinstance(value, (list, tuple)):
        return "[" + "; ".join(_text(each) for each in value) + "]"
    return repr(value)


def error_of(run):
    """The type and the text of what `run` raises."""
    try:
        run()
    except BaseException as error:  # KeyboardInterrupt too has to arrive as itself
        return type(error).__name__, str(error).splitlines()[:1]
    return "none"
