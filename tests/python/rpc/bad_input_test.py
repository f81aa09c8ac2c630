#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed.rpc on troupe with mistakes: each is one error, and nothing hangs."""
import contextlib
import json
import os
import signal
import socket
import threading
import time
import unittest

import torch
import torch.distributed.rpc as rpc
import torchtroupe
import workers
from torchtroupe import RpcOptions, _meeting


def pid():
    return os.getpid()


def same(x):
    return x


@rpc.functions.async_execution
def made_later(path):
    future = torch.futures.Future()
    threading.Thread(target=lambda: future.set_result(wait_for(path))).start()
    return future


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def fails_after(path):
    wait_for(path)
    raise ValueError


def rref_count(which):
    return int(rpc._rref_context_get_debug_info()[which])


def is_soon(is_so, seconds=10):
    until = time.monotonic() + seconds
    while not is_so() and time.monotonic() < until:
        time.sleep(0.01)
    return is_so()


def touch(path):
    with open(path, "w", encoding="utf-8"):
        pass


def error_of(run):
    """The text of the exception that run() raises."""
    try:
        run()
    except Exception as error:
        return str(error)
    return "no error"


def init(rank, world, **options):
    rpc.init_rpc(f"worker{rank}", backend=rpc.BackendType.TROUPE, rank=rank, world_size=world, rpc_backend_options=RpcOptions(**options))


def ended_by_ctrl_c(run, after=1, within=float("inf")):
    """Whether Ctrl-C, `after` so many seconds, ends run() `within` so many."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        run()
    except KeyboardInterrupt:
        return time.monotonic() - began < within
    return "no Ctrl-C"


def in_context(run):
    with torch.distributed.autograd.context():
        return run()


class Start(unittest.TestCase):
    """init_rpc() that fails. No worker is left, so each test tries to shut down afterwards."""

    def told(self, world, body):
        def with_shutdown(rank, folder):
            text = error_of(lambda: body(rank, folder))
            after = error_of(rpc.shutdown)
            return text if "RPC has not been initialized" in after or "is not set" in after else f"after it, shutdown: {after}"

        return workers.run(world, with_shutdown)

    def all_told(self, world, body, *parts):
        for text in self.told(world, body):
            for part in parts:
                self.assertIn(part, text)

    def test_a_missing_worker_is_named_by_its_rank(self):
        self.all_told(2, lambda rank, folder: workers.start(rank, 3, folder, rpc_timeout=6),
                      "expected 3 workers, and rank 2 has not come within 6 s", "give all workers the true world_size")

    def test_a_missing_worker_is_named_also_by_a_tcp_store(self):
        def body(rank, folder):
            if rank == 0:  # init_rpc() goes on with the store that listens on the port
                store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, multi_tenant=True)
                with open(f"{folder}/port.new", "w", encoding="utf-8") as file:
                    file.write(str(store.port))
                os.rename(f"{folder}/port.new", f"{folder}/port")
            wait_for(f"{folder}/port")
            with open(f"{folder}/port", encoding="utf-8") as file:
                init(rank, 3, init_method=f"tcp://127.0.0.1:{file.read()}", rpc_timeout=6)

        self.all_told(2, body, "expected 3 workers, and rank 2 has not come within 6 s")

    def test_a_rank_or_a_size_that_torchrun_does_not_know_is_an_error_at_once(self):
        """All workers share the store of torchrun's agent, which has started two."""

        def body(rank, folder):
            store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            os.environ.update(TORCHELASTIC_USE_AGENT_STORE="True", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(store.port), WORLD_SIZE="2")
            init(*given)

        for given, part in (((0, 3), "expected a world_size of 2 at most, got 3"), ((2, 2), "expected a rank from 0 to 1")):
            self.all_told(1, body, part)

    def test_two_sizes_of_the_world_are_an_error(self):
        self.all_told(2, lambda rank, folder: workers.start(rank, 2 + rank, folder),
                      "expected the same world_size in all workers", "'worker0' has 2", "'worker1' has 3")

    def test_a_rank_outside_the_world_is_an_error_of_all(self):
        self.all_told(3, lambda rank, folder: workers.start(rank, 2 if rank == 2 else 3, folder), "world_size")

    def test_two_workers_of_one_rank_are_an_error_of_both(self):
        self.all_told(2, lambda rank, folder: workers.start(0, 2, folder, name=f"worker{rank}", rpc_timeout=20),
                      "rank 0 is not unique", "Give each worker a rank of its own")

    def test_two_workers_of_one_name_are_an_error_of_both(self):
        self.all_told(2, lambda rank, folder: workers.start(rank, 2, folder, name="same"), "the worker name 'same' is not unique: ranks 0 and 1")

    def test_a_name_that_no_node_may_have_is_an_error_of_all(self):
        self.all_told(2, lambda rank, folder: workers.start(rank, 2, folder, name=f"wor:ker{rank}"), "wor:ker")

    def test_another_torch_is_an_error_of_both(self):
        def body(rank, folder):
            _meeting.VERSIONS["torch"] = f"2.1{1 + 4 * rank}"
            workers.start(rank, 2, folder)

        self.all_told(2, body, "expected one version of each package", "'worker0' has torch 2.11", "'worker1' has torch 2.15", "Install")

    def test_another_torchtroupe_is_an_error_of_both(self):
        def body(rank, folder):
            _meeting.VERSIONS["torchtroupe"] = f"0.{rank}"
            workers.start(rank, 2, folder)

        self.all_told(2, body, "expected one version of each package", "torchtroupe 0.0", "torchtroupe 0.1")

    def test_an_unreachable_store_is_an_error(self):
        began = time.monotonic()
        self.all_told(1, lambda rank, folder: init(1, 2, init_method="tcp://127.0.0.1:1", rpc_timeout=1),
                      "the store at 127.0.0.1:1 can't be reached (", "Connection refused", "Rank 0 holds the store")
        self.assertLess(time.monotonic() - began, 10)

    def test_another_program_in_the_place_of_the_store_is_an_error(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            self.all_told(1, lambda rank, folder: init(1, 2, init_method=f"tcp://127.0.0.1:{port}", rpc_timeout=1),
                          f"127.0.0.1:{port} does not answer as a store within 1 s")

    def test_a_store_without_a_folder_is_an_error(self):
        self.all_told(1, lambda rank, folder: init(0, 1, init_method=f"file://{folder}/none/store"), "there is no folder", "/none")

    def test_a_device_map_without_gpus_is_an_error_of_all(self):
        def body(rank, folder):
            workers.start(rank, 2, folder, device_maps={"worker1": {"cuda:70": "cuda:71"}} if rank == 0 else None)

        self.all_told(2, body, "the device map for worker 'worker1' names cuda:70, and this worker has", "CUDA_VISIBLE_DEVICES")

    def test_a_device_map_to_a_missing_gpu_is_an_error_of_all(self):
        def body(rank, folder):
            workers.start(rank, 2, folder, device_maps={"worker1": {"cpu": "cuda:71"}} if rank == 0 else None)

        self.all_told(2, body, "names cuda:71, and worker 'worker1' has")

    def test_a_device_map_for_nobody_is_an_error_of_all(self):
        self.all_told(2, lambda rank, folder: workers.start(rank, 2, folder, device_maps={"worker7": {"cpu": "cpu"}}), "got one for 'worker7'")

    def test_options_out_of_range_are_errors(self):
        for options, part in (({"rpc_timeout": -1}, "must be non-negative"), ({"num_worker_threads": 0}, "at least one"),
                              ({"certificates": "/none.pem"}, "there is no file /none.pem"), ({"host": "0.0.0.0"}, "expected `advertise`"),
                              ({"device_maps": {"a": {"cpu": "cpu", "cuda:0": "cpu"}}}, "leads two devices to one"),
                              ({"node": ["--host=10.0.0.1"]}, "expected --host as options of their own")):
            self.assertIn(part, error_of(lambda: RpcOptions(**options)))

    def test_ctrl_c_ends_each_wait_of_a_start(self):
        def for_a_worker(rank, folder):
            workers.start(0, 2, folder)

        def for_a_port(rank, folder):
            init(1, 2, init_method="tcp://127.0.0.1:1")

        def for_a_node(rank, folder):
            store = torch.distributed.PrefixStore("rpc_prefix_0", torch.distributed.FileStore(folder + "/store", 2))
            record = {"name": "worker0", "world": 2, "gpus": 0, **_meeting.VERSIONS}
            store.set("troupe/name/0", json.dumps(record))
            store.set("troupe/address", "127.0.0.1 1")  # nobody listens there
            workers.start(1, 2, folder)

        for wait in (for_a_worker, for_a_port, for_a_node):
            def body(rank, folder):
                told = ended_by_ctrl_c(lambda: wait(rank, folder))
                return told is True and "not been initialized" in error_of(rpc.get_worker_info)

            self.assertEqual(workers.run(1, body), [True], wait.__name__)


class Calls(unittest.TestCase):
    def first_told(self, run, *parts):
        """Worker 0 of 2 calls run(folder), which raises, and can be used after that."""
        def body(rank, folder):
            workers.start(rank, 2, folder)
            text = error_of(lambda: run(folder)) if rank == 0 else None
            assert rpc.rpc_sync(f"worker{1 - rank}", same, args=(1,)) == 1
            rpc.shutdown()
            return text

        text = workers.run(2, body)[0]
        for part in parts:
            self.assertIn(part, text)

    def test_an_rref_that_is_made_after_its_deletion_leaves_nothing(self):  # ED-1
        """The request times out, and its function works on."""

        def body(rank, folder):
            workers.start(rank, 2, folder)
            told = []
            if rank == 0:
                run = lambda function, path: rpc.remote("worker1", function, args=(path,), timeout=0.5)
                for name, make in (("plain", lambda path: run(wait_for, path)), ("later", lambda path: run(made_later, path)),
                                   ("fails", lambda path: run(fails_after, path)), ("context", lambda path: in_context(lambda: run(wait_for, path)))):
                    rref = make(f"{folder}/{name}")
                    told.append("500 ms" in error_of(rref._get_future().wait) or name)
                    del rref
                    told.append(is_soon(lambda: rref_count("num_pending_futures") == 0))  # the deletion is done
                    touch(f"{folder}/{name}")
                    told.append(is_soon(lambda: rpc.rpc_sync("worker1", rref_count, args=("num_owner_rrefs",)) == 0) or name)
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(2, body), [[True] * 12, []])

    def test_an_unpicklable_function_is_an_error(self):
        self.first_told(lambda folder: rpc.rpc_sync("worker1", lambda: 1), "pickle", "<lambda>")

    def test_an_unpicklable_result_is_an_error(self):
        self.first_told(lambda folder: rpc.rpc_sync("worker1", threading.Lock), "pickle", "lock", "name=worker1")

    def test_a_function_that_the_peer_lacks_is_an_error(self):
        def run(folder):
            import __main__
            exec("def only_here(): return 1", __main__.__dict__)
            rpc.rpc_sync("worker1", __main__.only_here)

        self.first_told(run, "only_here", "worker1")

    def test_an_unknown_worker_is_an_error(self):
        self.first_told(lambda folder: rpc.rpc_sync("worker9", same, args=(1,)), "worker9", "knows no worker of this name")

    def test_a_tensor_that_cannot_travel_is_an_error(self):
        self.first_told(lambda folder: rpc.rpc_sync("worker1", same, args=(torch.empty(2, device="meta"),)), "meta")


class End(unittest.TestCase):
    def test_shutdown_while_calls_run_waits_for_them(self):
        def body(rank, folder):
            workers.start(rank, 2, folder)
            if rank == 0:
                told = [rpc.rpc_async("worker1", time.sleep, args=(0.5,)) for _ in range(20)]
                rpc.shutdown()
                return all(each.done() for each in told)
            rpc.shutdown()
            return True

        self.assertEqual(workers.run(2, body), [True, True])

    def test_requests_after_shutdown_are_errors(self):
        def body(rank, folder):
            workers.start(rank, 1, folder)
            rpc.shutdown()
            return error_of(lambda: rpc.rpc_sync("worker0", pid))

        self.assertIn("RPC has not been initialized", workers.run(1, body)[0])

    def test_ctrl_c_ends_each_wait_for_an_answer(self):
        waits = {
            "rpc_sync": lambda args: rpc.rpc_sync("worker1", wait_for, args=args, timeout=0),
            "wait": lambda args: rpc.rpc_async("worker1", wait_for, args=args, timeout=0).wait(),
            "to_here": lambda args: rpc.remote("worker1", wait_for, args=args, timeout=0).to_here(timeout=0),
            "to_here on the owner": lambda args: rpc.remote("worker0", wait_for, args=args, timeout=0).to_here(timeout=0),
            "to_here in a context": lambda args: in_context(lambda: rpc.remote("worker1", wait_for, args=args, timeout=0).to_here(timeout=0)),
        }
        for name, wait in waits.items():
            def body(rank, folder):
                workers.start(rank, 2, folder)
                told = True
                if rank == 0:
                    told = ended_by_ctrl_c(lambda: wait((folder + "/ended",)), within=15)
                    if told is True:
                        told = rpc.rpc_sync("worker1", pid) > 0 and rpc.remote("worker1", pid).to_here() > 0
                    touch(folder + "/ended")
                rpc.shutdown()
                return told

            self.assertEqual(workers.run(2, body), [True, True], name)

    def test_ctrl_c_ends_the_wait_for_a_node(self):
        def body(rank, folder):
            workers.start(rank, 1, folder)
            with socket.create_server(("127.0.0.1", 0)) as silent:
                address = "127.0.0.1:" + str(silent.getsockname()[1])
                told = [ended_by_ctrl_c(lambda: torchtroupe.peer("nobody", address), within=15)]
            told.append(ended_by_ctrl_c(lambda: torchtroupe.peer("nobody"), within=15))
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(1, body), [[True, True]])

    def test_ctrl_c_ends_a_shutdown_that_waits_for_others(self):
        def body(rank, folder):
            workers.start(rank, 2, folder)
            if rank == 1:
                wait_for(folder + "/ended")
                rpc.shutdown(graceful=False)
                return True
            rpc.rpc_sync("worker1", pid)
            told = ended_by_ctrl_c(rpc.shutdown, within=15)
            touch(folder + "/ended")
            return told

        self.assertEqual(workers.run(2, body), [True, True])

    def test_ctrl_c_ends_a_shutdown_that_waits_for_a_call(self):
        def body(rank, folder):
            workers.start(rank, 2, folder)
            if rank == 1:
                with contextlib.suppress(RuntimeError):
                    rpc.shutdown()
                return True
            rpc.rpc_async("worker1", wait_for, args=(folder + "/ended",), timeout=0)
            told = ended_by_ctrl_c(rpc.shutdown, after=2, within=20)
            touch(folder + "/ended")
            return told

        self.assertEqual(workers.run(2, body), [True, True])


    def test_another_node_of_the_name_of_a_lost_worker_does_not_stand_for_it(self):  # RS-2
        def body(rank, folder):
            if rank == 2:
                wait_for(f"{folder}/address")
                options = RpcOptions()
                other = torchtroupe.rpc._Worker("worker1", 1, 2, options)
                with open(f"{folder}/address", encoding="utf-8") as file:
                    other.join(file.read())
                touch(f"{folder}/joined")
                wait_for(f"{folder}/ended")
                other.drop(True)
                return True
            usual = torchtroupe.rpc._Worker.hand_over
            own = []
            torchtroupe.rpc._Worker.hand_over = lambda worker: own.append(worker.address) or usual(worker)
            workers.start(rank, 2, folder)
            if rank == 1:
                wait_for(f"{folder}/ended")
            os.kill(rpc.rpc_sync("worker1", pid), signal.SIGKILL)
            loss = torchtroupe.rpc.native.torchtroupe_rpc_loss
            told = [is_soon(lambda: loss() is not None)]
            with open(f"{folder}/address.new", "w", encoding="utf-8") as file:
                file.write(own[0])
            os.rename(f"{folder}/address.new", f"{folder}/address")
            wait_for(f"{folder}/joined")
            told.append(is_soon(lambda: loss() is None, seconds=2))
            rpc.shutdown(graceful=False) if told[1] else told.append(error_of(rpc.shutdown))
            touch(f"{folder}/ended")
            return told

        first, *others = workers.run(3, body)
        self.assertEqual((first[:2], others), ([True, False], ["killed", True]))
        self.assertIn("worker 'worker1' is lost", first[2])


class Members(unittest.TestCase):
    """Groups without a fixed size."""

    def join(self, name, rank, folder, **options):
        rpc.init_rpc(name, backend=rpc.BackendType.TROUPE, rank=rank, rpc_backend_options=RpcOptions(init_method=f"file://{folder}/store", **options))

    def test_a_worker_joins_after_others_have_left_or_were_killed(self):
        def body(rank, folder):
            if rank:
                wait_for(f"{folder}/{rank - 1}")
            self.join(f"worker{rank}", rank, folder)
            told = rpc.rpc_sync("worker0", same, args=(rank,)) if rank else 0
            touch(f"{folder}/{rank}")
            if rank == 2:
                workers.kill_me()
            if rank == 0:
                wait_for(f"{folder}/4")
            rpc.shutdown()
            return told

        self.assertEqual(workers.run(5, body), [0, 1, "killed", 3, 4])

    def test_a_worker_that_leaves_gives_back_an_rref_that_is_still_made(self):
        def body(rank, folder):
            self.join(f"worker{rank}", rank, folder)
            told = True
            if rank == 0:
                wait_for(f"{folder}/left")
                told = is_soon(lambda: rref_count("num_owner_rrefs") == 0)
            else:
                kept = rpc.remote("worker0", time.sleep, args=(2.5,))
            rpc.shutdown()
            touch(f"{folder}/left")
            return told

        self.assertEqual(workers.run(2, body), [True, True])

    def test_a_group_that_all_have_left_begins_anew(self):
        def body(rank, folder):
            if rank:
                wait_for(f"{folder}/{rank - 1}")
            self.join("worker", rank, folder)
            rpc.shutdown()
            touch(f"{folder}/{rank}")
            return True

        self.assertEqual(workers.run(3, body), [True] * 3)

    def test_a_group_with_and_without_a_world_size_is_an_error(self):
        for first_has_size in (True, False):
            def body(rank, folder):
                if rank:
                    wait_for(f"{folder}/0")
                text = error_of(lambda: workers.start(0, 1, folder, name=f"worker{rank}") if (rank == 0) == first_has_size else
                                self.join(f"worker{rank}", rank, folder))
                touch(f"{folder}/{rank}")
                if rank == 0:
                    wait_for(f"{folder}/1")
                    rpc.shutdown()
                return text

            told = workers.run(2, body)
            self.assertEqual(told[0], "no error")
            self.assertIn("Give world_size to all workers, or to none", told[1])

    def test_another_torch_is_an_error_of_the_later_one(self):
        def body(rank, folder):
            if rank == 0:
                self.join("worker0", 0, folder)
                touch(f"{folder}/0")
                wait_for(f"{folder}/1")
                return rpc.shutdown()
            wait_for(f"{folder}/0")
            _meeting.VERSIONS["torch"] = "2.99"
            text = error_of(lambda: self.join("worker1", 1, folder))
            touch(f"{folder}/1")
            return text

        self.assertIn("'worker1' has torch 2.99", workers.run(2, body)[1])

    def test_a_taken_name_is_an_error(self):
        def body(rank, folder):
            if rank == 0:
                self.join("same", 0, folder)
                touch(f"{folder}/0")
                wait_for(f"{folder}/1")
                return rpc.shutdown()
            wait_for(f"{folder}/0")
            text = error_of(lambda: self.join("same", 1, folder))
            touch(f"{folder}/1")
            return text

        self.assertIn("the name 'same' is taken", workers.run(2, body)[1])

    def test_device_maps_without_gpus_are_an_error(self):
        self.assertIn("names cuda:70, and this worker has", workers.run(
            1, lambda rank, folder: self.join("a", 0, folder, device_maps={"b": {"cuda:70": "cpu"}}))[0])


if __name__ == "__main__":
    unittest.main()
