#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Calls by name between Python workers and nodes of C++. TROUPE_PROGRAM: the program troupe; TROUPE_LIBRARY: libexample_python_peers.so.
Without these two, tests with a C++ node are skipped."""
import os
import signal
import threading
import time
import unittest

import torch
import torch._dynamo  # optimizers import it: here once, because that takes a minute on busy CPUs
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torchtroupe
import workers
from torchtroupe.examples import cpp_node, middle_stage, solver

weight = torch.arange(3.0).requires_grad_()
cpp = unittest.skipUnless("TROUPE_PROGRAM" in os.environ, "expected TROUPE_PROGRAM and TROUPE_LIBRARY")


@torchtroupe.function("weighted")
def weighted(x):
    return x * weight, x


@torchtroupe.function("left here")
def left_here():
    found, none = torchtroupe.gradients(each for each in (weight, torch.ones(1, requires_grad=True)))
    assert none is None and torchtroupe.gradients([]) == ()
    assert "expected several tensors" in text_of(lambda: torchtroupe.gradients(weight), TypeError)
    return found


@torchtroupe.function("same")
def same(*tensors, **values):
    return torchtroupe.Reply(tensors, values)


@torchtroupe.function("number")
def number():
    return 3


@torchtroupe.function("fails")
def fails():
    raise ValueError("no luck")


let_go = threading.Event()


@torchtroupe.function("late")
def late():
    let_go.wait(60)


@torchtroupe.function("let go")
def let_late_go():
    let_go.set()


moment = threading.Event()


@torchtroupe.function("begun")
def begun():
    moment.set()


@torchtroupe.function("a moment")
def a_moment():
    torchtroupe.peer("worker0").call("begun")
    time.sleep(1)
    return {"done": True}


running, failed = threading.Semaphore(0), []


@torchtroupe.function("asks on")
def asks_on():
    """Calls by name until that fails."""
    try:
        while True:
            torchtroupe.peer("worker0", timeout=0.1).call("same")
            running.release()
    except ConnectionError as error:
        failed.append(str(error))


@torchtroupe.function("who")
def who():
    return {"caller": torchtroupe.caller()}


@torchtroupe.function("reward")
def reward(x, scale):
    return (x * x * weight).sum() * scale


@torchtroupe.function("relayed")
def relayed(x):
    return rpc.rpc_sync("worker0", torch.mul, args=(x, x)) + x


@torchtroupe.function("cubed")
def cubed(x):
    return x * torchtroupe.peer("worker0").call("squared", x)


@torchtroupe.function("squared")
def squared(x):
    return x * x


def touched(x):
    return x + 1


def text_of(call, kind):
    try:
        call()
    except kind as error:
        return str(error)
    return "no error"


def on_worker0(body):
    """Runs `body` on worker0 of two."""

    def run(rank, folder):
        workers.start(rank, 2, folder)
        told = body() if rank == 0 else True
        rpc.shutdown()
        return told

    told = workers.run(2, run)
    assert told == [True, True], told


class by_name(unittest.TestCase):
    def test_values_come_back_unchanged(self):
        values = {"a": True, "b": -2**63, "c": 0.1, "d": "Größe", "e": [1, 2], "f": [1, 2.5], "g": ["x", ""], "h": []}

        def body():
            x = torch.rand(2, 3)
            reply = torchtroupe.peer("worker1").call("same", x, None, **values)
            return torch.equal(reply.tensors[0], x) and reply.tensors[1] is None and reply.values == {**values, "f": [1.0, 2.5]}

        on_worker0(body)

    def test_a_call_in_a_context_is_part_of_its_pass(self):  # PC-1
        """The caller's leaf gets its gradient in PyTorch's context, and the callee's leaf there; requests of PyTorch take part."""

        def body():
            x = torch.rand(3, requires_grad=True)
            with dist_autograd.context() as context:
                far = torchtroupe.peer("worker1")
                y, unused = far.call("weighted", torch.sin(x))
                loss = rpc.rpc_sync("worker1", touched, args=(y * y,)).sum()
                dist_autograd.backward(context, [loss])
                found = dist_autograd.get_gradients(context)[x]
                left = far.call("left here")
            y = torch.sin(x) * weight
            expected = torch.autograd.grad((y * y + 1).sum(), [x, weight])
            return torch.equal(found, expected[0]) and torch.equal(left, expected[1])

        on_worker0(body)

    def test_outside_a_context_nothing_requires_grad(self):
        on_worker0(lambda: not torchtroupe.peer("worker1").call("squared", torch.rand(3, requires_grad=True)).requires_grad)

    def test_requests_of_a_function_join_its_context(self):  # PC-2
        def body():
            x = torch.rand(3, requires_grad=True)
            with dist_autograd.context() as context:
                near = rpc.rpc_sync("worker1", touched, args=(x,))  # so worker1 knows the context
                y = torchtroupe.peer("worker1").call("relayed", near) + torchtroupe.peer("worker1").call("cubed", x)
                dist_autograd.backward(context, [y.sum()])
                found = dist_autograd.get_gradients(context)[x]
            return torch.allclose(found, 2 * (x + 1) + 1 + 3 * x * x)

        on_worker0(body)

    def test_gradients_of_gradients(self):
        def body():
            x = torch.rand(3, requires_grad=True)
            with torchtroupe.context() as context:
                y = torchtroupe.peer("worker1").call("cubed", x)
                context.backward(y.sum(), create_graph=True)
                first = context.gradient(x)
                context.backward(first.sum())
                second = context.gradient(x) - first
            return torch.allclose(first, 3 * x * x) and torch.allclose(second, 6 * x)

        on_worker0(body)

    def test_a_closed_context_is_an_error(self):
        def body():
            x = torch.rand(3, requires_grad=True)
            new = torchtroupe.context()
            told = [text_of(lambda: new.backward(x.sum()), ValueError), text_of(lambda: new.gradient(x), ValueError)]
            with new:
                pass
            told += [text_of(lambda: new.backward(x.sum()), ValueError), text_of(lambda: new.gradient(x), ValueError)]
            return all("use it within its `with` block" in each for each in told) or told

        on_worker0(body)

    def test_shutdown_waits_for_calls(self):  # AG-4
        def run(rank, folder):
            workers.start(rank, 2, folder)
            told = []
            calls = threading.Thread(target=lambda: told.append(torchtroupe.peer("worker1").call("a moment").values))
            if rank == 0:
                calls.start()
                assert moment.wait(60)  # that of this worker: the call has come
            rpc.shutdown()
            calls.join() if rank == 0 else None
            return told

        self.assertEqual(workers.run(2, run), [[{"done": True}], []])

    def test_calls_that_run_while_the_worker_ends_fail(self):  # AG-5
        """Functions of a worker that ends make calls by name all the time: each gets one error, and the worker ends."""

        def run(rank, folder):
            workers.start(rank, 2, folder)
            if rank == 1:
                are_running = all(running.acquire(timeout=30) for _ in range(40))
                assert are_running, failed
                rpc.shutdown(graceful=False)
                return len(failed) == 4 or failed
            text = []
            ask = lambda: text.append(text_of(lambda: torchtroupe.peer("worker1").call("asks on"), ConnectionError))
            calls = [threading.Thread(target=ask) for _ in range(4)]
            for each in calls:
                each.start()
            for each in calls:
                each.join()
            rpc.shutdown(graceful=False)
            return all("worker1" in each or each == "no error" for each in text) and len(text) == 4 or text

        self.assertEqual(workers.run(2, run), [True, True])

    def test_a_context_does_not_open_within_one_of_pytorch(self):
        def body():
            with dist_autograd.context():
                return "leave it first" in text_of(lambda: torchtroupe.context().__enter__(), ValueError)

        on_worker0(body)

    def test_the_caller_is_known(self):
        on_worker0(lambda: torchtroupe.peer("worker1").call("who").values == {"caller": "worker0"} and torchtroupe.caller() is None)

    def test_each_mistake_is_one_clear_error(self):
        def body():
            far = torchtroupe.peer("worker1")
            told = {
                "nobody": text_of(lambda: torchtroupe.peer("nobody", timeout=0.1), ConnectionError),
                "'missing'": text_of(lambda: far.call("missing"), LookupError),
                "port from 1 to 65535": text_of(lambda: torchtroupe.peer("b", "127.0.0.1:70000"), ValueError),
                "as the result, got int": text_of(lambda: far.call("number"), RuntimeError),
                "ValueError: no luck": text_of(lambda: far.call("fails"), RuntimeError),
                "'a' can't travel: expected a bool": text_of(lambda: far.call("same", a=object()), TypeError),
                "64 bits": text_of(lambda: far.call("same", a=2**63), OverflowError),
                "expected a tensor or None by position, got int": text_of(lambda: far.call("same", 1), TypeError),
                "a sparse tensor": text_of(lambda: far.call("same", torch.eye(2).to_sparse()), TypeError),
                "missing": text_of(lambda: far.create("missing"), LookupError),
                "torch.rpc": text_of(lambda: torchtroupe.function("torch.rpc.x")(same), ValueError),
            }
            wrong = {key: each for key, each in told.items() if key not in each}
            return not wrong or wrong

        on_worker0(body)

    def test_a_call_ends_at_its_deadline(self):  # PC-3
        def body():
            began = time.monotonic()
            text = text_of(lambda: torchtroupe.peer("worker1").call("late", timeout=0.3), TimeoutError)
            took = time.monotonic() - began
            torchtroupe.peer("worker1").call("let go")
            return "late" in text and took < 30 or (text, took)

        on_worker0(body)

    def test_without_a_worker_there_is_one_error(self):
        self.assertIn("init_rpc", text_of(lambda: torchtroupe.Peer("worker1").call("same"), ConnectionError))


@cpp
class with_cpp(unittest.TestCase):
    def alone(self, body):
        """Runs `body` with a C++ node in a process of its own."""

        def run(rank, folder):
            with cpp_node.peer_in_cpp(os.environ["TROUPE_PROGRAM"], os.environ["TROUPE_LIBRARY"], "stage1") as peer:
                return body(peer)

        told = workers.run(1, run)
        self.assertEqual(told, [True])

    def test_a_solver_has_derivatives_of_first_and_second_order(self):
        self.alone(lambda peer: solver.main(peer) is None)

    def test_a_middle_stage_is_trained(self):
        def body(peer):
            losses = middle_stage.train(peer)
            return losses[-1] < 0.02 or losses

        self.alone(body)

    def test_a_node_of_cpp_calls_a_function_of_python(self):
        def body(peer):
            x = torch.rand(3, requires_grad=True)
            with dist_autograd.context() as context:
                loss = peer.call("rated", x)
                dist_autograd.backward(context, [loss])
                found = dist_autograd.get_gradients(context)
            expected = torch.autograd.grad(3 * (4 * x * x * weight).sum(), [x, weight])
            return torch.allclose(found[x], expected[0]) and torch.allclose(found[weight], expected[1])

        self.alone(body)

    def test_a_call_to_a_lost_node_names_it(self):
        def body(peer):
            text_of(lambda: peer.call("missing"), LookupError)
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
                os.kill(int(children.read().split()[0]), signal.SIGKILL)
            return "stage1" in text_of(lambda: peer.call("same", timeout=10), (ConnectionError, TimeoutError))

        self.alone(body)


if __name__ == "__main__":
    unittest.main()
