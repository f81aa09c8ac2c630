# SPDX-License-Identifier: BSD-3-Clause
"""torch.utils.checkpoint in both forms, nested, with randomness, with early stop, and where it is refused."""
import torch
from record import error_of, record
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, set_checkpoint_early_stop

torch.manual_seed(2)
block = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 8))
ran = []
block[0].register_forward_hook(lambda *ignored: ran.append(torch.is_grad_enabled()))


def gradients(run):
    x = torch.randn(4, 8, requires_grad=True)
    block.zero_grad()
    ran.clear()
    run(x).square().sum().backward()
    return [x.grad, *(each.grad for each in block.parameters())], list(ran)


for reentrant in (False, True):
    record(f"reentrant {reentrant}", gradients(lambda x: checkpoint(block, x, use_reentrant=reentrant)))
    record(f"nested {reentrant}", gradients(
        lambda x: checkpoint(lambda y: checkpoint(block, y.sin(), use_reentrant=reentrant).cos(), x, use_reentrant=reentrant)))
    record(f"sequence {reentrant}", gradients(lambda x: checkpoint_sequential(block, 2, x, use_reentrant=reentrant)))
    x = torch.randn(4, 8, requires_grad=True)
    y = checkpoint(block, x, use_reentrant=reentrant)
    record(f"grad {reentrant}", error_of(lambda: torch.autograd.grad(y.sum(), x)))
with set_checkpoint_early_stop(False):
    record("no early stop", gradients(lambda x: checkpoint(block, x, use_reentrant=False)))
record("twice", gradients(lambda x: checkpoint(block, checkpoint(block, x, use_reentrant=False), use_reentrant=False)))
