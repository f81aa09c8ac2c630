# SPDX-License-Identifier: BSD-3-Clause
"""Training a few small models: convolutions, LSTM, transformer, embedding; gradient accumulation, clipping, mixed precision."""
import torch
from record import record
from torch import nn

torch.manual_seed(5)


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.lstm = nn.LSTM(16, 24, num_layers=2, batch_first=True)
        self.block = nn.TransformerEncoderLayer(24, 4, 32, dropout=0.1, batch_first=True)
        self.head = nn.Linear(24, 20)

    def forward(self, tokens):
        return self.head(self.block(self.lstm(self.embedding(tokens))[0]))


def train(name, model, batch, steps=12, cast=False):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        inputs, targets = batch()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=cast):
            loss = nn.functional.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
        loss.backward()
        losses.append(loss.item())
        if step % 2 == 1:  # gradients of two batches
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=step % 4 == 1)
    record(f"{name} losses", losses)
    record(f"{name} parameters", list(model.parameters()))


convolutions = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(6 * 13 * 13, 10))
images = lambda: (torch.randn(4, 1, 28, 28), torch.randint(10, (4,)))
train("convolutions", convolutions, images)
train("mixed precision", convolutions, images, cast=True)
train("sequence", Sequence(), lambda: (torch.randint(20, (3, 9)), torch.randint(20, (3, 9))))
