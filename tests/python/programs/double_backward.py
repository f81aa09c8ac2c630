# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of gradients, three deep, also through `.grad` and a penalty in training."""
import torch
from record import record

torch.manual_seed(4)
x = torch.randn(5, requires_grad=True)
value = (x.pow(4).sum() * x.exp().sum()).log()
for depth in range(3):
    value = torch.autograd.grad(value, x, create_graph=True)[0].square().sum()
    record(f"depth {depth}", value)

x.grad = None
x.sin().sum().backward(create_graph=True)
record("through grad", torch.autograd.grad(x.grad.square().sum(), x))
x.grad = None

model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Softplus(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(20):
    optimizer.zero_grad()
    data = torch.randn(8, 4, requires_grad=True)
    output = model(data)
    slope = torch.autograd.grad(output.sum(), data, create_graph=True)[0]
    loss = output.square().mean() + (slope.norm(2, dim=1) - 1).square().mean()
    loss.backward()
    optimizer.step()
record("loss", loss)
record("parameters", list(model.parameters()))
