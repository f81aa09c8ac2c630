# SPDX-License-Identifier: BSD-3-Clause
"""A Python model whose middle stage is a module on a C++ node."""
import torch
import torch.distributed.autograd as dist_autograd
from torch import nn
from torchtroupe.examples import cpp_node


def train(stage, steps=150, width=16, rate=0.2):
    """Returns the loss of each step."""
    torch.manual_seed(1)
    first, last = nn.Linear(1, width), nn.Linear(width, 1)
    middle = stage.create("middle", width=width)
    inputs = torch.linspace(-2, 2, 64).unsqueeze(1)
    targets, losses = torch.sin(inputs), []
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=rate)
    for _ in range(steps):
        with dist_autograd.context() as context:
            hidden = middle.call("forward", torch.tanh(first(inputs)))
            loss = nn.functional.mse_loss(last(hidden), targets)
            dist_autograd.backward(context, [loss])
            for each, gradient in dist_autograd.get_gradients(context).items():
                each.grad = gradient
            optimizer.step()
            middle.call("step", rate=rate)
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    given = cpp_node.words(__doc__)
    with cpp_node.peer_in_cpp(given.troupe, given.library, "stage1") as peer:
        found = train(peer)
    print(f"loss {found[0]:.3f} at first, {found[-1]:.4f} after {len(found)} steps")
    assert found[-1] < 0.02, found[-1]
