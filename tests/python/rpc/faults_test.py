#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Workers of torch.distributed.rpc on hosts: a slow link, a cut, a frozen worker, and one that is killed and started again."""
import os
import signal
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import hosts
import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import workers
from autograd_test import layer, message

SECONDS = 30  # until an error on busy cores; a request has twice as long
over, third_waits = threading.Event(), threading.Event()
kept = []


def work_on():
    over.wait(2 * SECONDS)


def end():
    over.set()


class cuts(torch.autograd.Function):
    """Its backward cuts this worker's host off, and works on."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        for way in "INPUT", "OUTPUT":
            hosts.run(f"iptables -w -A {way} -j DROP")
        work_on()


def work_for_third():
    third_waits.set()
    work_on()


def news_of_loss():
    return (workers.torchtroupe.rpc.native.torchtroupe_rpc_loss() or b"").decode()


def has_come(name):
    """Whether shutdown() of the worker has told this worker, the leader."""
    return any(name in each.gathered_objects for each in list(rpc.api._all_gather_sequence_id_to_states.values()))


def wait_until(is_so):
    until = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def with_cut(x):
    return cuts.apply(x)


def text_of(run, *arguments, **named):
    """The text of the error, which has to come in time."""
    began = time.monotonic()
    try:
        text = f"no error: {run(*arguments, **named)}"
    except RuntimeError as error:
        text = str(error)
    took = time.monotonic() - began
    return text if took < SECONDS else f"after {took:.0f} s: {text}"


def until_right(run, *arguments):
    """What this returns, once it raises no more."""
    until = time.monotonic() + SECONDS
    while True:
        try:
            return run(*arguments)
        except RuntimeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def sum_of_layer(x, to):
    """By a call, or with the same functions in this process."""
    return (rpc.rpc_sync(to, layer, args=(x, x)) if to else layer(*message.apply(x, x))).sum()


def is_right(to):
    """Whether a pass with this worker has the bits of one process."""
    x = torch.rand(3, 3, requires_grad=True)
    with dist_autograd.context() as context:
        dist_autograd.backward(context, [sum_of_layer(x, to)])
        return torch.equal(dist_autograd.get_gradients(context)[x], torch.autograd.grad(sum_of_layer(x, None), x)[0])


def check_contexts():
    if int(dist_autograd._get_debug_info()["num_autograd_contexts"]) > 0:
        raise RuntimeError("there are contexts")


def leave_open(to, x):
    """Leaves a context and an RRef behind on another worker. Returns this process, and the value of the RRef."""

    def leave():
        kept.append(dist_autograd.context())
        kept[0].__enter__()
        kept.append(sum_of_layer(torch.ones(3, 3, requires_grad=True), to))
        kept.append(rpc.remote(to, torch.add, args=(x, 1)))
        return os.getpid(), kept[2].to_here()

    with ThreadPoolExecutor() as threads:  # the context stays with the thread
        return threads.submit(leave).result()


class faults(hosts.Hosts):
    def test_a_slow_link_makes_nobody_lost(self):
        """Each large tensor is under way for longer than three heartbeats."""
        self.limit_rates("20mbit")

        def program(call):
            torch.manual_seed(1)
            x, w = torch.rand(1024, 1024, requires_grad=True), torch.rand(1024, 1, requires_grad=True)
            return [x, w], (call("worker1", torch.mul, args=(x, w)) * w).sum()

        def body(rank, folder):
            log = f"{folder}/log{rank}"
            self.start(rank, 2, folder, heartbeat_ms=250, node=["--log-level=info", f"--log-file={log}"])
            if rank == 0:
                with dist_autograd.context() as context:
                    leaves, loss = program(rpc.rpc_sync)
                    dist_autograd.backward(context, [loss])
                    got = [dist_autograd.get_gradients(context)[leaf] for leaf in leaves]
                leaves, loss = program(lambda to, f, args: f(*message.apply(*args)))
                self.assertTrue(all(map(torch.equal, got, torch.autograd.grad(loss, leaves))))
            rpc.shutdown()
            with open(log, encoding="utf-8") as lines:
                return [line for line in lines if "is unreachable" in line]

        self.assertEqual(workers.run(2, body), [[], []])

    def test_a_worker_that_is_cut_off_is_named(self):  # AG-3, RS-2
        """The cut comes while a pass and calls both ways are under way. The others go on, and learn of the loss before one ends."""

        def body(rank, folder):
            self.start(rank, 3, folder, heartbeat_ms=250, rpc_timeout=2 * SECONDS)
            told = []
            if rank == 0:
                x = torch.rand(3, requires_grad=True)
                call = rpc.rpc_async("worker2", work_on)
                assert third_waits.wait(SECONDS)
                with dist_autograd.context() as context:
                    loss = rpc.rpc_sync("worker1", rpc.rpc_sync, args=("worker2", with_cut, (x,))).sum()
                    told = [text_of(dist_autograd.backward, context, [loss]), text_of(call.wait)]
                self.assertTrue(is_right("worker1"))
                rpc.rpc_sync("worker1", end)
                wait_until(lambda: has_come("worker1"))
            elif rank == 1:
                work_on()
                wait_until(lambda: "worker2" in news_of_loss())
            else:
                told = [text_of(rpc.rpc_sync, "worker0", work_for_third)]
            end()
            return told + [text_of(rpc.shutdown)]

        by_first, by_second, by_third = workers.run(3, body)
        for text in by_first + by_second:
            self.assertRegex(text, "^(call of 'torch.rpc' on )?(node|worker) 'worker2' .*no sign of life")
        self.assertRegex(by_third[0], "^call of 'torch.rpc' on node 'worker0' failed: it went down")
        self.assertRegex(by_third[1], "^call of 'torch.rpc' on node 'worker0' failed: it is down")

    def frozen(self, heartbeat_ms, until):
        """What comes of a call and a pass that began while a worker was frozen. `until` gets both, and ends the freeze."""

        def body(rank, folder):
            self.start(rank, 2, folder, heartbeat_ms=heartbeat_ms, rpc_timeout=2 * SECONDS)
            told = None
            if rank == 0:
                frozen = rpc.rpc_sync("worker1", os.getpid)
                x = torch.rand(3, 3, requires_grad=True)
                with dist_autograd.context() as context, ThreadPoolExecutor() as threads:
                    loss = sum_of_layer(x, "worker1")
                    os.kill(frozen, signal.SIGSTOP)
                    try:
                        call = rpc.rpc_async("worker1", torch.add, args=(1, 2))
                        run = threads.submit(dist_autograd.backward, context, [loss])
                        until(call, run)
                    finally:
                        os.kill(frozen, signal.SIGCONT)
                    told = [text_of(call.wait), text_of(run.result)]
                self.assertTrue(until_right(is_right, "worker1"))
                rpc.rpc_sync("worker1", end)
            else:
                work_on()
            rpc.shutdown()
            return told

        told, other = workers.run(2, body)
        self.assertIsNone(other)
        return told

    def test_a_short_freeze_does_no_harm(self):
        def until(*_):  # a second is over
            self.assertIn("1000 ms", text_of(rpc.rpc_sync, "worker1", os.getpid, timeout=1))

        self.assertEqual(self.frozen(2000, until), ["no error: 3", "no error: None"])

    def test_a_frozen_worker_is_named(self):  # AG-3, RS-2
        call, run = self.frozen(250, lambda call, run: (text_of(call.wait), text_of(run.result)))
        self.assertRegex(call, "^call of 'torch.rpc' on node 'worker1' failed: it went down .no sign of life")
        self.assertRegex(run, "^node 'worker1' went down during backward .no sign of life")

    def test_a_worker_that_is_started_again_is_called_again(self):  # AG-6, UX-3
        def body(rank, folder):
            is_killed = f"{folder}/killed"
            while rank == 3 and not os.path.exists(is_killed):
                time.sleep(0.01)
            self.start(min(rank, 2), None, folder)
            if rank > 0:
                return work_on(), rpc.shutdown()
            others = "worker1", "worker2"
            for other in others:
                until_right(rpc.rpc_sync, other, os.getpid)
            third_of_second = lambda: rpc.rpc_sync("worker1", until_right, args=(rpc.rpc_sync, "worker2", os.getpid))
            third_of_second()
            killed, value = rpc.rpc_sync("worker2", leave_open, args=("worker0", 1))
            os.kill(killed, signal.SIGKILL)
            open(is_killed, "w", encoding="utf-8").close()
            until_right(check_contexts)
            again = until_right(rpc.rpc_sync, "worker2", os.getpid)
            told = [value, again == third_of_second(), is_right("worker2")]
            told.append(rpc.rpc_sync("worker2", leave_open, args=("worker0", 2)) == (again, 3))
            told.append(rpc.rpc_sync("worker2", is_right, args=("worker0",)))
            for other in others:
                rpc.rpc_sync(other, end)
            return told + [text_of(rpc.shutdown)]

        self.assertEqual(workers.run(4, body), [[2, True, True, True, True, "no error: None"], (None, None), "killed", (None, None)])


if __name__ == "__main__":
    unittest.main()
