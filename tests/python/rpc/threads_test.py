#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The threads on which the backend TROUPE runs requests and callbacks."""
import os
import signal
import threading
import time
import unittest

import torch
import torch.distributed.rpc as rpc
import torchtroupe.rpc
import workers

gate = threading.Event()
MANY = 50  # short requests, after which a network thread runs the next one


def twice(x):
    return x * 2


def wait_at_gate():
    return gate.wait(30)


def open_gate():
    gate.set()


def wait_for_file(path):
    until = time.monotonic() + 20
    while not os.path.exists(path) and time.monotonic() < until:
        time.sleep(0.01)
    return os.path.exists(path)


def touch(path):
    open(path, "w", encoding="utf-8").close()


def interrupt(*_):
    raise KeyboardInterrupt


held_while_waiting = threading.Lock()
asked = None  # an RRef


class Locked:
    """A value that is read under a lock."""

    def __getstate__(self):
        return {"any": 1}

    def __setstate__(self, state):
        with held_while_waiting:
            pass


class Asking:
    """A value that asks for another one while it is read."""

    def __getstate__(self):
        return {"any": 1}

    def __setstate__(self, state):
        assert asked.to_here() == 2


class threads(unittest.TestCase):
    def test_a_request_that_takes_long_holds_up_no_other(self):  # AG-1
        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = []
            if rank == 0:
                for _ in range(MANY):
                    rpc.rpc_sync("worker1", twice, args=(1,))
                held = [rpc.rpc_async("worker1", wait_at_gate) for _ in range(3)]
                told = [rpc.rpc_sync("worker1", twice, args=(number,)) for number in range(MANY)]
                rpc.rpc_sync("worker1", open_gate)
                told = told == [2 * number for number in range(MANY)] and all(each.wait() for each in held)
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [True, []])

    def test_a_callback_that_takes_long_holds_up_no_answer(self):  # AG-1, QK-1, WA-1
        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = []
            if rank == 0:
                for _ in range(MANY):
                    rpc.rpc_async("worker1", twice, args=(1,)).wait()
                held = rpc.rpc_async("worker1", twice, args=(1,)).then(lambda _: gate.wait(30))
                told = [rpc.rpc_sync("worker1", twice, args=(number,)) for number in range(MANY)]
                told += [rpc.rpc_async("worker1", twice, args=(number,)).wait() for number in range(MANY)]
                gate.set()
                told = told == 2 * [2 * number for number in range(MANY)] and held.wait()
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [True, []])

    def test_a_callback_may_wait_for_what_the_thread_does_next(self):  # WA-3
        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = []
            if rank == 0:
                first = rpc.rpc_async("worker1", wait_for_file, args=(folder + "/go",))

                def hold(_):
                    touch(folder + "/go")
                    return gate.wait(30)

                held = rpc.rpc_async("worker1", wait_for_file, args=(folder + "/given",)).then(hold)
                touch(folder + "/given")
                told = first.wait()
                gate.set()
                told = told and held.wait()
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [True, []])

    def test_a_result_may_need_what_the_thread_that_waits_holds(self):  # WA-3
        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = []
            if rank == 0:
                with held_while_waiting:
                    first = rpc.rpc_async("worker1", wait_for_file, args=(folder + "/go",))
                    locked = rpc.rpc_async("worker1", Locked)
                    rpc.rpc_sync("worker1", touch, args=(folder + "/go",))
                    told = first.wait()
                told = told and isinstance(locked.wait(), Locked)
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [True, []])

    def test_a_result_may_ask_for_another_value(self):  # WA-1
        def body(rank, folder):
            global asked
            workers.start(rank, 2, folder)
            told = []
            if rank == 0:
                asked = rpc.remote("worker1", twice, args=(1,))

                def ask():
                    for _ in range(MANY):
                        told.append(isinstance(rpc.rpc_async("worker1", Asking).wait(), Asking))

                thread = threading.Thread(target=ask)
                thread.start()
                thread.join(60)
                told = told == [True] * MANY
                asked = None
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [True, []])

    def test_a_signal_ends_the_wait_and_no_answer_is_lost(self):
        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = set()
            if rank == 0:
                signal.signal(signal.SIGALRM, interrupt)
                for number in range(MANY):
                    ask = (lambda: rpc.rpc_sync("worker1", twice, args=(1,))) if number % 2 else (
                        lambda: [each.wait() for each in [rpc.rpc_async("worker1", twice, args=(1,)) for _ in range(4)]])
                    signal.setitimer(signal.ITIMER_REAL, 0.01)
                    try:
                        while True:
                            try:
                                ask()
                            except Exception as error:
                                told.add(str(error))
                    except KeyboardInterrupt:
                        told.add("interrupted")
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [{"interrupted"}, set()])

    def test_answers_come_to_a_thread_that_does_not_wait(self):  # WA-1
        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = []
            if rank == 0:
                for _ in range(MANY):
                    asked = [rpc.rpc_async("worker1", twice, args=(1,)) for _ in range(4)]
                    until = time.monotonic() + 20
                    while not all(each.done() for each in asked) and time.monotonic() < until:
                        continue
                    told.append(all(each.done() for each in asked))
            rpc.shutdown()
            return set(told)

        self.assertEqual(workers.run(2, body), [{True}, set()])

    def test_many_threads_wait_for_their_own_answers(self):  # WA-1
        def body(rank, folder):
            workers.start(rank, 2, folder)
            wrong = []

            def ask(number):
                for turn in range(MANY):
                    asked = 1000 * number + turn
                    if rpc.rpc_sync(f"worker{1 - rank}", twice, args=(asked,)) != 2 * asked:
                        wrong.append(asked)

            all_threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
            for each in all_threads:
                each.start()
            for each in all_threads:
                each.join()
            rpc.shutdown()
            return wrong

        self.assertEqual(workers.run(2, body), [[], []])

    def test_an_error_before_the_send_waits_for_nothing(self):  # WA-1
        """rpc_sync to a worker that is unknown fails at once, also while an earlier request of the thread is open."""

        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = True
            if rank == 0:
                held = rpc.rpc_async("worker1", wait_at_gate)
                unknown = torch._C._distributed_rpc.WorkerInfo("worker7", 7)
                try:
                    told = rpc.rpc_sync(unknown, twice, args=(1,))
                except RuntimeError as error:
                    told = "worker7" in str(error) and not held.done()
                rpc.rpc_sync("worker1", open_gate)
                held.wait()
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [True, True])

    def test_a_dropped_rref_holds_up_no_other_answer(self):  # WA-1
        """The garbage collector drops an RRef between a request and its wait, and the owner answers late."""

        def body(rank, folder):
            workers.start(rank, 3, folder, num_worker_threads=1)
            told = True
            if rank == 0:
                rrefs = [rpc.remote("worker2", twice, args=(1,))]
                rrefs[0].to_here()
                held = rpc.rpc_async("worker2", wait_for_file, args=(folder + "/go",))
                usual = torchtroupe.rpc._invoke_any

                def invoke(*given):
                    future = usual(*given)
                    rrefs.clear()
                    return future

                torchtroupe.rpc._invoke_any = invoke
                told = rpc.rpc_sync("worker1", twice, args=(2,))
                torchtroupe.rpc._invoke_any = usual
                touch(folder + "/go")
                told = held.wait() and told == 4
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(3, body), [True] * 3)

    def test_a_thread_keeps_what_is_local_to_it(self):  # KS-1
        """Requests of one thread find the same threading.local, as on any thread of Python."""

        def body(rank, folder):
            workers.start(rank, 2, folder, num_worker_threads=1)
            most = max(rpc.rpc_sync("worker1", count_here) for _ in range(MANY)) if rank == 0 else 0
            rpc.shutdown()
            return most > 1

        self.assertEqual(workers.run(2, body), [True, False])


local = threading.local()


def count_here():
    local.count = getattr(local, "count", 0) + 1
    return local.count


if __name__ == "__main__":
    unittest.main()
