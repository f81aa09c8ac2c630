# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of hook: order, replacement, removal while running, hooks of modules, of several tensors, after accumulation."""
import torch
from record import error_of, record

torch.manual_seed(1)
trace = []


def note(name, change=None):
    def hook(*gradients):
        trace.append((name, torch._C._current_graph_task_id() != -1))
        return change(*gradients) if change else None

    return hook


x = torch.randn(3, 3, requires_grad=True)
w = torch.randn(3, 3, requires_grad=True)
hidden = x @ w
hidden.register_hook(note("hidden first"))
hidden.register_hook(note("hidden doubles", lambda gradient: gradient * 2))
hidden.retain_grad()
hidden.grad_fn.register_prehook(note("prehook", lambda gradients: (gradients[0] + 1,)))
hidden.grad_fn.register_hook(note("posthook", lambda outputs, inputs: tuple(o * 3 for o in outputs)))
x.register_hook(note("leaf"))
x.register_post_accumulate_grad_hook(lambda tensor: trace.append(("accumulated", tensor.grad is not None)))
removed = []
removed.append(hidden.register_hook(lambda gradient: removed[0].remove()))
hidden.tanh().sum().backward(retain_graph=True)
record("first", (x.grad, w.grad, hidden.grad))
record("trace", trace)
trace.clear()
hidden.sum().backward()
record("second", (x.grad, w.grad, hidden.grad))
record("trace", trace)

trace.clear()
a = torch.ones(2, requires_grad=True)
b = torch.ones(2, requires_grad=True)
c, d = a * 2, b * 3
torch.autograd.graph.register_multi_grad_hook((c, d), lambda gradients: trace.append([g is not None for g in gradients]))
torch.autograd.graph.register_multi_grad_hook((c, d), lambda gradient: trace.append(gradient.tolist()), mode="any")
(c + d).sum().backward()
(a * 2).sum().backward()
record("several tensors", trace)

trace.clear()
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
model[0].register_full_backward_hook(lambda module, inputs, outputs: trace.append(("full", inputs, outputs)))
model[2].register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 2,))
model(torch.randn(5, 3)).sum().backward()
record("modules", trace)
record("gradients", [each.grad for each in model.parameters()])

fails = torch.ones(2, requires_grad=True) * 2
fails.register_hook(lambda gradient: 1 / 0)
record("error", error_of(lambda: fails.sum().backward()))
wrong = torch.ones(2, requires_grad=True) * 2
wrong.register_hook(lambda gradient: "text")
record("wrong result", error_of(lambda: wrong.sum().backward()))

trace.clear()
y = (torch.ones(2, requires_grad=True) * 2).exp()
y.grad_fn.next_functions[0][0].register_prehook(lambda gradients: trace.append(torch._C._current_autograd_node().name()))
y.register_hook(lambda gradient: trace.append(torch._C._current_autograd_node().name()))
y.sum().backward()
record("current function", (trace, torch._C._current_autograd_node()))
