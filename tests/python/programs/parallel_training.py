# SPDX-License-Identifier: BSD-3-Clause
"""Two processes that share a model: DistributedDataParallel and FSDP2 over gloo, started by torch.multiprocessing; with
activation checkpointing and autocast. Then the transforms of torch.func around and inside a backward pass."""
import tempfile

import torch
import torch.distributed
from record import record
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        return x + checkpoint(lambda y: self.second(self.first(y).tanh()), x, use_reentrant=False)


def trained(model, rank):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(torch.randn(3, 8, generator=generator)).float().square().sum()
        loss.backward()
        optimizer.step()
    return list(model.parameters())


def worker(rank, folder, queue):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    torch.manual_seed(1)
    model = torch.nn.Sequential(Block(), Block())
    data_parallel = trained(torch.nn.parallel.DistributedDataParallel(model), rank)
    torch.manual_seed(1)
    sharded = torch.nn.Sequential(Block(), Block())
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    for block in sharded:
        fully_shard(block, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    parts = [each.to_local() for each in trained(sharded, rank)]
    queue.put([rank, [each.tolist() for each in data_parallel], [each.tolist() for each in parts]])
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    queue = torch.multiprocessing.get_context("fork").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(worker, (folder, queue), nprocs=2, start_method="fork")
        for rank, data_parallel, parts in sorted(queue.get() for _ in range(2)):
            record(f"rank {rank}: data parallel", [torch.tensor(each) for each in data_parallel])
            record(f"rank {rank}: FSDP2", [torch.tensor(each) for each in parts])

    torch.manual_seed(2)
    weight = torch.randn(3, 3, requires_grad=True)

    def energy(x):
        return (x @ weight).tanh().square().sum()
    x = torch.randn(4, 3)
    per_sample = torch.func.vmap(torch.func.grad(energy))(x)
    hessian = torch.func.hessian(energy)(x[0])
    tangent = torch.func.jvp(energy, (x,), (torch.ones_like(x),))[1]
    record("torch.func", (per_sample, hessian, tangent))
    (per_sample.square().sum() + hessian.sum() + tangent).backward()
    record("backward over torch.func", weight.grad)
    y = torch.randn(5, 3, requires_grad=True)
    jacobian, = torch.autograd.grad((y.exp() @ weight).sum(1), y, torch.eye(5), is_grads_batched=True)
    record("batched gradients", jacobian)
