#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The backend TROUPE of torch.distributed.rpc: what PyTorch's own suites (suite.py) do not ask."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import workers


def twice(x):
    return x * 2


def pid():
    return os.getpid()


def nested(to, depth):
    return rpc.rpc_sync(f"worker{to}", nested, args=(1 - to, depth - 1)) if depth else "end"


AGAIN = """
import os
import torch
import torch.distributed.rpc as rpc
import torchtroupe
rank = int(os.environ["RANK"])
rpc.init_rpc(f"worker{rank}", backend=rpc.BackendType.TROUPE, rank=rank, world_size=2, rpc_backend_options=torchtroupe.RpcOptions())
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    os._exit(1)
print("sum", rpc.rpc_sync(f"worker{1 - rank}", torch.add, args=(1, 2)), flush=True)
rpc.shutdown()
"""
ON_TWO_HOSTS = """
import os, signal
import torch
import torch.distributed.rpc as rpc
import torchtroupe
host, rank = os.environ["HOST"], int(os.environ["RANK"])
begun = f"{os.path.dirname(__file__)}/{host}"
is_first = not os.path.exists(begun)
open(begun, "w").close()
options = torchtroupe.RpcOptions(rpc_timeout=120)
rpc.init_rpc(f"worker{rank}", backend=rpc.BackendType.TROUPE, rank=rank, world_size=2, rpc_backend_options=options)
if is_first and host == "a":
    signal.pause()  # until the agent ends this worker
result = rpc.rpc_sync(f"worker{1 - rank}", torch.add, args=(1, 2))
if is_first:
    os._exit(1)
print("sum", result, "restarts", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
rpc.shutdown()
"""
slow, is_slow = threading.Event(), threading.Event()


def value_of(there):
    return there.to_here()


def wait_long():
    is_slow.set()
    slow.wait(30)


def wait_no_more():
    slow.set()


waiting = []


@rpc.functions.async_execution
def answered_later():
    waiting.append(torch.futures.Future())
    return waiting[-1]


def count_waiting():
    return len(waiting)


def answer_all():
    for each in waiting:
        each.set_result(7)


def outcome_of(folder, runs):
    """Runs torchrun for each command and environment at once. Returns the exit codes (None: it was not over in time) and what all wrote."""
    until = time.monotonic() + 240
    with open(f"{folder}/told", "w+", encoding="utf-8") as told:  # children that are left would keep a pipe open
        running = [subprocess.Popen([sys.executable, "-m", "torch.distributed.run", *command], env={**os.environ, **environment},
                                    stdout=told, stderr=told) for command, environment in runs]
        codes = []
        for each in running:
            try:
                codes.append(each.wait(max(0, until - time.monotonic())))
            except subprocess.TimeoutExpired:
                codes.append(None)
        for each in running:
            each.terminate()  # ends the children too
        for each in running:
            try:
                each.wait(40)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()
        told.seek(0)
        return codes, told.read()


class group(unittest.TestCase):
    def test_the_program_of_the_page(self):
        page = (pathlib.Path(__file__).parents[3] / "docs/python.md").read_text(encoding="utf-8")
        program, = (each for each in re.findall("^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE) if "rpc.shutdown()" in each)
        with tempfile.TemporaryDirectory() as folder:
            program = program.replace("tcp://127.0.0.1:29500", f"file://{folder}/store")
            running = [subprocess.Popen([sys.executable, "-c", program, str(rank)], stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
            told = [each.communicate(timeout=120)[0] for each in running]
        self.assertEqual(([each.returncode for each in running], told), ([0, 0], ["tensor([2., 2., 2.])\n", ""]))

    def each(self, told, expected):
        self.assertEqual(told, [expected] * len(told))

    def test_tensors_keep_what_they_are(self):  # MF-1, MF-2
        """Strides, dtypes, undefined and sparse tensors, quantised ones, large bytes and large tensors come back unchanged."""

        def body(rank, folder):
            workers.start(rank, 2, folder)
            if rank == 0:
                cases = [torch.rand(3, 4).t(), torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
                         torch.arange(5, dtype=torch.int16), torch.rand(3, dtype=torch.float64, requires_grad=True),
                         torch.rand(600, 600), torch.eye(3).to_sparse(), torch.tensor([]), torch.rand(()).to(torch.bfloat16),
                         torch.rand(3, dtype=torch.complex64).conj(), torch.rand(2, 6)[:, ::2]]
                for case in cases:
                    back = rpc.rpc_sync("worker1", same, args=(case,))
                    assert back.dtype == case.dtype and back.requires_grad == case.requires_grad, case
                    assert torch.equal(back.to_dense(), case.to_dense()) if case.is_sparse else torch.equal(back, case), case
                    if not case.is_sparse and case.is_contiguous() is False and case.numel() == case.untyped_storage().size():
                        assert back.stride() == case.stride(), case
                quantised = torch.quantize_per_tensor(torch.rand(4), 0.1, 0, torch.quint8)
                assert torch.equal(rpc.rpc_sync("worker1", same, args=(quantised,)).dequantize(), quantised.dequantize())
                assert rpc.rpc_sync("worker1", len, args=("x" * 20_000_000,)) == 20_000_000
            rpc.shutdown()
            return "right"

        self.each(workers.run(2, body), "right")

    def test_options_of_tensorpipe_are_taken(self):
        def body(rank, folder):
            options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=1, rpc_timeout=100, init_method=f"file://{folder}/store")
            rpc.init_rpc(f"worker{rank}", backend=rpc.BackendType.TROUPE, rank=rank, world_size=2, rpc_backend_options=options)
            told = rpc.get_rpc_timeout(), rpc.rpc_sync(f"worker{1 - rank}", nested, args=(rank, 2))
            rpc.shutdown()
            return told

        self.each(workers.run(2, body), (100, "end"))

    def test_nested_requests_never_lack_a_thread(self):  # AG-2, WY-1
        """With one worker thread each, requests that lead back and forth are answered."""

        def body(rank, folder):
            workers.start(rank, 2, folder, num_worker_threads=1)
            told = [rpc.rpc_async(f"worker{1 - rank}", nested, args=(rank, 20)) for _ in range(4)]
            told = [each.wait() for each in told]
            rpc.shutdown()
            return told

        self.each(workers.run(2, body), ["end"] * 4)

    def test_open_requests_hold_no_thread(self):  # AG-1, LY-1, QK-1
        """300 requests whose functions have returned without a result, on two worker threads. The answers come all at once."""

        def body(rank, folder):
            workers.start(rank, 2, folder, num_worker_threads=2)
            told = []
            if rank == 0:
                told = [rpc.rpc_async("worker1", answered_later) for _ in range(300)]
                while rpc.rpc_sync("worker1", count_waiting) < 300:
                    pass
                rpc.rpc_sync("worker1", answer_all)
                told = [each.wait() for each in told]
                told.append(int(rpc.api._get_current_rpc_agent().get_metrics()["agent.thread_pool_size"]) <= 4)
            rpc.shutdown()
            return set(told)

        self.assertEqual(workers.run(2, body), [{7, True}, set()])

    def test_callbacks_may_wait(self):  # AG-1, QK-1
        """Callbacks of more futures than the agent has threads call other workers, and wait."""

        def body(rank, folder):
            workers.start(rank, 2, folder)
            ask = lambda future: rpc.rpc_sync(f"worker{1 - rank}", twice, args=(future.value(),))
            told = [rpc.rpc_async(f"worker{1 - rank}", twice, args=(1,)).then(ask) for _ in range(16)]
            told = [each.wait() for each in told]
            rpc.shutdown()
            return told

        self.each(workers.run(2, body), [4] * 16)

    def test_a_worker_that_calls_itself_gets_copies(self):  # MF-3
        def body(rank, folder):
            workers.start(rank, 1, folder)
            x = torch.zeros(3)
            rpc.rpc_sync("worker0", torch.Tensor.add_, args=(x, 1))
            rpc.shutdown()
            return x.sum().item()

        self.each(workers.run(1, body), 0)

    def test_a_killed_worker_is_named_at_once(self):  # AG-3, RS-2
        def body(rank, folder):
            workers.start(rank, 3, folder)
            if rank == 2:
                workers.kill_me()
            began = time.monotonic()
            try:
                while True:
                    rpc.rpc_sync("worker2", pid)
            except RuntimeError as error:
                text = str(error)
            assert "worker2" in text, text
            assert time.monotonic() - began < 20
            try:
                rpc.shutdown()
            except RuntimeError as error:
                return "worker2" in str(error) or str(error)
            return "shutdown said nothing"

        self.assertEqual(workers.run(3, body), [True, True, "killed"])

    def test_a_timeout_has_the_text_of_pytorch(self):  # AG-3
        def body(rank, folder):
            workers.start(rank, 2, folder)
            text = ""
            if rank == 0:
                try:
                    rpc.rpc_sync("worker1", wait_long, timeout=0.2)
                except RuntimeError as error:
                    text = str(error)
                rpc.rpc_sync("worker1", wait_no_more)
            rpc.shutdown()
            return "RPC ran for more than set timeout (200 ms)" in text if rank == 0 else text

        self.assertEqual(workers.run(2, body), [True, ""])

    def test_shutdown_waits_for_requests_that_run(self):  # AG-4, RS-1
        def body(rank, folder):
            workers.start(rank, 2, folder)
            answer = rpc.rpc_async("worker1", time.sleep, args=(1,)) if rank == 0 else None
            rpc.shutdown()
            return answer.done() if answer else True

        self.each(workers.run(2, body), True)

    def test_shutdown_without_grace_ends_calls_that_run(self):  # AG-5, LA-1, QK-2
        def body(rank, folder):
            workers.start(rank, 2, folder)
            if rank == 1:
                assert is_slow.wait(30)
                began = time.monotonic()
                slow.set()
                rpc.shutdown(graceful=False)
                return time.monotonic() - began < 10
            answer = rpc.rpc_async("worker1", wait_long)
            try:
                answer.wait()
            except RuntimeError:
                pass
            rpc.shutdown(graceful=False)
            return True

        self.each(workers.run(2, body), True)

    def test_two_workers_of_one_rank_are_refused(self):
        def body(rank, folder):
            workers.start(0, 2, folder, name=f"worker{rank}", rpc_timeout=2)

        self.assertTrue(any("is not unique" in text for text in workers.run(2, body)))

    def test_an_enum_from_before_another_registration_still_names_the_backend(self):
        def body(rank, folder):
            before = rpc.BackendType.TROUPE
            rpc.backend_registry.register_backend("ANOTHER", None, None)
            options = workers.torchtroupe.RpcOptions(init_method=f"file://{folder}/store")
            rpc.init_rpc("worker0", backend=before, rank=0, world_size=1, rpc_backend_options=options)
            found = rpc.rpc_sync("worker0", torch.add, args=(1, 2))
            rpc.shutdown()
            return found

        self.assertEqual(workers.run(1, body), [3])

    def test_after_a_failed_start_another_one_succeeds(self):
        def body(rank, folder):
            try:
                workers.start(rank, 3, folder, rpc_timeout=1)
            except RuntimeError:
                pass
            os.makedirs(folder + "/second", exist_ok=True)
            workers.start(rank, 2, folder + "/second")
            told = rpc.rpc_sync(f"worker{1 - rank}", twice, args=(21,))
            rpc.shutdown()
            return told

        self.each(workers.run(2, body), 42)

    def test_torchrun_starts_a_group_that_failed_once_more(self):
        """The store of torchrun's agent keeps what the first workers wrote."""
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/program.py", "w") as program:
                program.write(AGAIN)
            command = ["--nproc-per-node=2", "--max-restarts=1", program.name]
            codes, told = outcome_of(folder, [(command, {})])
        self.assertEqual((codes, told.count("sum 3")), ([0], 2), told)

    def test_torchrun_starts_a_group_of_two_hosts_that_failed_on_one_of_them_once_more(self):
        """The agent of the other host starts its workers again too, and does not count that."""
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/program.py", "w") as program:
                program.write(ON_TWO_HOSTS)
            store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            command = ["--nnodes=2", "--nproc-per-node=1", "--max-restarts=1", "--rdzv-backend=c10d",
                       f"--rdzv-endpoint=127.0.0.1:{store.port}", "--rdzv-conf=is_host=0", "--local-addr=127.0.0.1", program.name]
            codes, told = outcome_of(folder, [(command, {"HOST": host}) for host in "ab"])
        self.assertEqual(codes, [0, 0], told)
        self.assertIn("sum 3 restarts 0", told)
        self.assertIn("sum 3 restarts 1", told)

    def test_workers_come_and_go_without_a_world_size(self):
        def body(rank, folder):
            options = workers.torchtroupe.rpc.RpcOptions(init_method=f"file://{folder}/store")
            rpc.init_rpc(f"worker{rank}", backend=rpc.BackendType.TROUPE, rank=rank, rpc_backend_options=options)
            while True:
                try:
                    told = rpc.rpc_sync(f"worker{1 - rank}", twice, args=(21,))
                    break
                except RuntimeError:
                    time.sleep(0.05)
            with open(f"{folder}/{rank}", "w", encoding="utf-8"):
                pass
            while not os.path.exists(f"{folder}/{1 - rank}"):
                time.sleep(0.01)
            rpc.shutdown()
            return told

        self.each(workers.run(2, body), 42)

    def test_workers_without_a_world_size_find_each_other_by_id(self):  # AG-6
        """Worker 1 has not asked for worker 0, which calls it, nor worker 2 for worker 1, whose value it gets."""

        def body(rank, folder):
            workers.start(rank, None, folder)
            if rank == 0:
                while len(rpc.api._get_current_rpc_agent().get_worker_infos()) < 3:
                    pass
                x = torch.rand(3, requires_grad=True)
                with dist_autograd.context() as context:
                    dist_autograd.backward(context, [rpc.rpc_sync("worker1", torch.mul, args=(x, x)).sum()])
                    assert torch.equal(dist_autograd.get_gradients(context)[x], 2 * x.detach())
                told = rpc.rpc_sync("worker2", value_of, args=(rpc.remote("worker1", twice, args=(21,)),))
                for other in "worker1", "worker2":
                    rpc.rpc_sync(other, wait_no_more)
            else:
                told = wait_long() or 42
            rpc.shutdown()
            return told

        self.each(workers.run(3, body), 42)

    def test_forty_workers_start(self):
        def body(rank, folder):
            workers.start(rank, 40, folder, num_worker_threads=2)
            told = rpc.rpc_sync(f"worker{(rank + 1) % 40}", twice, args=(rank,))
            rpc.shutdown()
            return told == 2 * rank

        self.each(workers.run(40, body), True)


def same(x):
    return x


if __name__ == "__main__":
    unittest.main()
