# SPDX-License-Identifier: BSD-3-Clause
"""Opens the part of a linear layer in a checkpoint as a state dict, and writes the state plus 1 to another file.

    weights.py PART FILE

Takes Python's package safetensors, with torch or, if torch is not there, with numpy.
"""
import json
import sys

import safetensors
from safetensors import safe_open

try:
    import torch
    from safetensors.torch import load_file, save_file
except ImportError:
    torch = None
    from safetensors.numpy import load_file, save_file

part, file = sys.argv[1:]
tensors = load_file(part)
state = {name.removeprefix("0/"): value for name, value in tensors.items() if not name.startswith("troupe:")}
assert state.keys() == {"weight", "bias"}, state.keys()
assert tensors["troupe:exp_avg/0/weight"].shape == state["weight"].shape == (3, 4), tensors
with safe_open(part, "np" if torch is None else "pt") as opened:
    about = json.loads(opened.metadata()["troupe"])
assert about["optimizer"] == "adam" and about["groups"][0]["lr"] == 0.1, about
assert about["parameters"][0] == {"name": "0/weight", "group": 0, "step": 1, "slots": ["exp_avg", "exp_avg_sq"]}, about
save_file({name: value + 1 for name, value in state.items()}, file)
if torch is not None:
    model, path = torch.nn.Linear(4, 3), file
    model.load_state_dict(safetensors.torch.load_file(path))
print("weights.py: read and written with", "numpy" if torch is None else "torch " + torch.__version__)
