#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Distributed autograd on troupe's passes: what PyTorch's own suites (suite.py) do not ask."""
import contextlib
import os
import pathlib
import threading
import time
import unittest

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torchtroupe
import workers


def layer(x, w):
    return torch.tanh(x @ w)


def relayed(x, w, to):
    """Half of the work here, half on another worker, and a result that nobody uses."""
    here = layer(x, w)
    there = rpc.rpc_sync(to, layer, args=(here, w))
    return there + here, (here * 3).sum()


weight = torch.linspace(-1, 1, 16).reshape(4, 4).requires_grad_()


def with_weight(x):
    return layer(x, weight)


class message(torch.autograd.Function):
    """The arguments of a call, one function with an edge for each, as a send has."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.set_materialize_grads(False)
        return tuple(each.view_as(each) if isinstance(each, torch.Tensor) else each for each in tensors)

    @staticmethod
    def backward(ctx, *gradients):
        return gradients


class dies(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        workers.kill_me()


def with_death(x):
    return dies.apply(x)


begun, over = threading.Semaphore(0), threading.Event()  # of functions that outlive their node
heard = []


@torchtroupe.function("outlives")
def outlives(x):
    begun.release()
    over.wait(60)
    try:
        rpc.rpc_sync("worker0", torch.add, args=(x, x))
    except RuntimeError as error:
        heard.append(str(error))
    try:
        torchtroupe.peer("worker0").call("nothing")
    except ConnectionError as error:
        heard.append(str(error))
    return x * x


gate, freed_by = threading.Event(), []


def late(x):
    gate.wait(60)
    return x * x


def open_gate():
    gate.set()


def have_no_context(seconds=10):
    """Whether PyTorch has no context of distributed autograd within so many seconds."""
    until = time.monotonic() + seconds
    while int(dist_autograd._get_debug_info()["num_autograd_contexts"]) > 0 and time.monotonic() < until:
        time.sleep(0.01)
    return int(dist_autograd._get_debug_info()["num_autograd_contexts"]) == 0


class notes_its_end:
    def __del__(self):
        freed_by.append(threading.get_native_id())


class with_note(torch.autograd.Function):
    """The graph holds an object of Python that notes which thread frees it."""

    @staticmethod
    def forward(ctx, x):
        ctx.note = notes_its_end()
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def noted(x):
    begun.release()
    return with_note.apply(x)


def has_thread(name):
    try:
        return any(each.read_text().startswith(name) for each in pathlib.Path("/proc/self/task").glob("*/comm"))
    except OSError:  # a thread has ended meanwhile
        return True


def leaf():
    return torch.arange(6.0).reshape(2, 3).requires_grad_()


def square_of(rref):
    return (rref.local_value() ** 2).sum()


class passes(unittest.TestCase):
    def test_sums_have_the_bits_of_one_process(self):  # UX-1, GU-1, GU-2
        """Results of many calls, used in many places, with nested calls and unused results: bit for bit one process's gradients."""

        def program(call):
            torch.manual_seed(1)
            x, w = torch.rand(8, 8, requires_grad=True), torch.rand(8, 8, requires_grad=True)
            h, parts = x, []
            for i in range(6):
                a, unused = call(1 + i % 2, relayed, h, w, f"worker{2 - i % 2}")
                b = call(1 + (i + 1) % 2, layer, a, x)
                h = a * b + torch.sin(h) * x
                parts.append((h * w).sum() * 1e-3)
            return x, w, sum(parts)

        def body(rank, folder):
            workers.start(rank, 3, folder)
            told = True
            if rank == 0:
                original = rpc.rpc_sync
                with dist_autograd.context() as context:
                    x, w, loss = program(lambda to, f, *args: original(f"worker{to}", f, args=args))
                    dist_autograd.backward(context, [loss], retain_graph=True)
                    got = dist_autograd.get_gradients(context)
                    got = [got[x].clone(), got[w].clone()]
                rpc.rpc_sync = lambda to, f, args: f(*message.apply(*args))  # the same program in one process
                x, w, loss = program(lambda to, f, *args: rpc.rpc_sync(to, f, args))
                rpc.rpc_sync = original
                loss.backward()
                told = torch.equal(got[0], x.grad) and torch.equal(got[1], w.grad)
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(3, body), [True] * 3)

    def test_an_unused_result_hangs_nobody(self):
        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = True
            if rank == 0:
                x = torch.rand(3, 3, requires_grad=True)
                with dist_autograd.context() as context:
                    used = rpc.rpc_sync("worker1", torch.mul, args=(x, x))
                    rpc.rpc_sync("worker1", torch.add, args=(x, x))
                    dist_autograd.backward(context, [used.sum()])
                    told = torch.equal(dist_autograd.get_gradients(context)[x], 2 * x.detach())
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [True] * 2)

    def test_a_pass_from_another_worker(self):  # UX-2
        """RRef.backward on the owner, twice: gradients of both add up on all workers."""

        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = True
            if rank == 0:
                x = torch.rand(3, 3, requires_grad=True)
                with dist_autograd.context() as context:
                    loss = rpc.remote("worker1", torch.sum, args=(x,))
                    loss.backward(context, retain_graph=True)
                    loss.backward(context)
                    told = torch.equal(dist_autograd.get_gradients(context)[x], torch.full((3, 3), 2.0))
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [True] * 2)

    def test_a_worker_that_dies_in_a_pass_is_named(self):
        def body(rank, folder):
            workers.start(rank, 2, folder)
            x = torch.rand(3, requires_grad=True)
            if rank == 1:
                time.sleep(60)
            with dist_autograd.context() as context:
                loss = rpc.rpc_sync("worker1", with_death, args=(x,)).sum()
                began, text = time.monotonic(), ""
                try:
                    dist_autograd.backward(context, [loss])
                except RuntimeError as error:
                    text = str(error)
            rpc.shutdown(graceful=False)
            return ("worker1" in text or text) and time.monotonic() - began < 15

        self.assertEqual(workers.run(2, body), [True, "killed"])

    def test_gradients_are_those_of_all_processes_of_ddp(self):  # GU-2, GT-11
        """DDP between two remote stages: its buckets are summed when backward returns, though the last gradients leave before."""

        def body(rank, folder):
            workers.start(rank, 3, folder)
            told = []
            if rank < 2:
                torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/ddp", rank=rank, world_size=2)
                torch.manual_seed(3)
                model = torch.nn.Linear(4, 4, bias=False)
                ours = torch.nn.parallel.DistributedDataParallel(model)
                for step in range(20):
                    x = torch.full((2, 4), 0.1 * (rank + step + 1))
                    (expected,) = torch.autograd.grad(with_weight(model(with_weight(x))).sum(), [model.weight])
                    torch.distributed.all_reduce(expected)
                    with dist_autograd.context() as context:
                        there = rpc.rpc_sync("worker2", with_weight, args=(x,))
                        loss = rpc.rpc_sync("worker2", with_weight, args=(ours(there),)).sum()
                        dist_autograd.backward(context, [loss])
                        told.append(torch.allclose(dist_autograd.get_gradients(context)[model.weight], expected / 2))
                torch.distributed.destroy_process_group()
            rpc.shutdown()
            return all(told)

        self.assertEqual(workers.run(3, body), [True] * 3)

    def test_functions_may_outlive_their_node(self):  # UX-4
        """Requests and calls by name that run on when their node has ended get errors, and harm nobody."""

        def body(rank, folder):
            workers.start(rank, 2, folder, node=["--stop-limit=1"])
            if rank == 0:
                x, failed = torch.rand(3, requires_grad=True), []
                with dist_autograd.context():
                    request = rpc.rpc_async("worker1", outlives, args=(x,))
                    for ask in (lambda: torchtroupe.peer("worker1").call("outlives", x), request.wait):
                        try:
                            ask()
                        except (RuntimeError, ConnectionError) as error:
                            failed.append(str(error))
                rpc.shutdown(graceful=False)
                return ["worker1" in each for each in failed]
            both = begun.acquire(timeout=30) and begun.acquire(timeout=30)
            rpc.shutdown(graceful=False)
            over.set()
            until = time.monotonic() + 30
            while has_thread("troupe") and time.monotonic() < until:
                time.sleep(0.01)
            return both and not has_thread("troupe") and len(heard) == 4 or heard

        self.assertEqual(workers.run(2, body), [[True, True], True])

    def test_the_thread_that_ends_a_node_frees_graphs(self):  # UX-4
        """To free objects of Python takes the interpreter's lock, and the network thread must not wait for it."""

        def body(rank, folder):
            workers.start(rank, 2, folder)
            if rank == 1:
                told = begun.acquire(timeout=30)
                rpc.shutdown(graceful=False)
                with open(f"{folder}/ended", "w", encoding="utf-8"):
                    pass
                return told and (freed_by == [threading.get_native_id()] or freed_by)
            with dist_autograd.context(), contextlib.suppress(RuntimeError):
                rpc.rpc_sync("worker1", noted, args=(torch.rand(3, requires_grad=True),))
                until = time.monotonic() + 60
                while not os.path.exists(f"{folder}/ended") and time.monotonic() < until:
                    time.sleep(0.01)
            rpc.shutdown(graceful=False)
            return True

        self.assertEqual(workers.run(2, body), [True] * 2)

    def test_an_answer_after_the_release_leaves_nothing(self):  # UX-3
        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = True
            if rank == 0:
                with dist_autograd.context():
                    answer = rpc.rpc_async("worker1", late, args=(torch.rand(3, requires_grad=True),))
                rpc.rpc_sync("worker1", open_gate)
                answer.wait()
                told = have_no_context()
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [True] * 2)

    def test_contexts_leave_nothing(self):  # UX-3
        def body(rank, folder):
            workers.start(rank, 2, folder)
            if rank == 0:
                x = torch.rand(3, requires_grad=True)
                for _ in range(20):
                    with dist_autograd.context() as context:
                        dist_autograd.backward(context, [rpc.rpc_sync("worker1", torch.mul, args=(x, x)).sum()])
            rpc.shutdown()
            return dist_autograd._get_debug_info()["num_current_backward_passes"]

        self.assertEqual(workers.run(2, body), [0] * 2)


if __name__ == "__main__":
    unittest.main()
