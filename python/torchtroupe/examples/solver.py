# SPDX-License-Identifier: BSD-3-Clause
"""A solver in C++ within a training loop in Python. The solver runs on a C++ node, and has derivatives of its own
(torch::autograd::Function); gradients of gradients go through it too."""
import torch
import torch.distributed.autograd as dist_autograd
import torchtroupe
from torchtroupe.examples import cpp_node


def fit(solver, steps=60):
    """Finds k, of which only solutions of x + k x^3 = y are known. Returns k and the last loss."""
    y = torch.linspace(-2, 2, 16)
    with torch.no_grad():
        seen = solver.call("solve", y, torch.tensor(1.5))
    k = torch.tensor(0.5, requires_grad=True)
    optimizer = torch.optim.Adam([k], lr=0.05)
    for _ in range(steps):
        with dist_autograd.context() as context:
            loss = (solver.call("solve", y, k) - seen).square().mean()
            dist_autograd.backward(context, [loss])
            k.grad = dist_autograd.get_gradients(context)[k]
        optimizer.step()
    return k.item(), loss.item()


def derivatives(solver, y, k):
    """The sum of the solutions, and the first and second derivative by k."""
    k = k.clone().requires_grad_()
    with torchtroupe.context() as context:
        total = solver.call("solve", y, k).sum()
        context.backward(total, create_graph=True)
        first = context.gradient(k)
        context.backward(first)
        second = context.gradient(k) - first  # gradients of several passes add up
    return total.item(), first.item(), second.item()


def main(solver):
    k, loss = fit(solver)
    print(f"k = {k:.3f} (1.5 was used), loss {loss:.1e}")
    assert abs(k - 1.5) < 0.05, k
    y, at, width = torch.linspace(-2, 2, 16, dtype=torch.float64) + 0.3, torch.tensor(0.7, dtype=torch.float64), 1e-4
    _, first, second = derivatives(solver, y, at)
    (before, before_first, _), (after, after_first, _) = (derivatives(solver, y, at + sign * width) for sign in (-1, 1))
    print(f"first derivative {first:.6f}, by finite differences {(after - before) / (2 * width):.6f}")
    print(f"second derivative {second:.6f}, by finite differences {(after_first - before_first) / (2 * width):.6f}")
    assert abs(first - (after - before) / (2 * width)) < 1e-6
    assert abs(second - (after_first - before_first) / (2 * width)) < 1e-6


if __name__ == "__main__":
    given = cpp_node.words(__doc__)
    with cpp_node.peer_in_cpp(given.troupe, given.library, "solver") as peer:
        main(peer)
