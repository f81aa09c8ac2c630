# SPDX-License-Identifier: BSD-3-Clause
"""Workers of torch.distributed.rpc for tests: forked processes, each of which calls a function with its rank."""
import faulthandler
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback

import torch.distributed.rpc as rpc
import torchtroupe.rpc

SECONDS = 120  # a hang is a failure


def start(rank, world, folder, name=None, **options):
    """init_rpc for a worker of a test."""
    rpc.init_rpc(name or f"worker{rank}", backend=rpc.BackendType.TROUPE, rank=rank, world_size=world,
                 rpc_backend_options=torchtroupe.rpc.RpcOptions(init_method=f"file://{folder}/store", **options))


def run(world, body, alive=None):
    """Calls body(rank, folder) in `world` processes. Returns what each has returned; a text that begins with "raised" for an
    exception, and "killed" for a process that a signal has ended. A process that hangs fails the test."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        results = [context.Pipe(duplex=False) for _ in range(world)]
        processes = []
        for rank in range(world):
            processes.append(context.Process(target=_serve, args=(body, rank, folder, results[rank][1])))
            processes[-1].start()
        until = time.monotonic() + SECONDS
        told = []
        for rank, process in enumerate(processes):
            process.join(max(0.1, until - time.monotonic()))
            if process.is_alive():
                for each in processes:
                    each.kill()
                raise AssertionError(f"worker {rank} of {world} hangs")
            receiver = results[rank][0]
            told.append(receiver.recv() if receiver.poll() else "killed")
        return told


def _serve(body, rank, folder, sender):
    faulthandler.dump_traceback_later(SECONDS - 5)  # shows where a worker hangs
    logging.disable(logging.CRITICAL)  # to write a line, PyTorch imports torch._dynamo, which takes a minute on busy CPUs
    try:
        result = body(rank, folder)
    except BaseException as error:  # the test compares its text
        result = f"raised {type(error).__name__}: {error}"
        if "TORCHTROUPE_TEST_LOG" in os.environ:
            traceback.print_exc()
    sender.send(result)
    sender.close()
    sys.stdout.flush()
    os._exit(0)  # as multiprocessing does, but without waiting for threads that a failed init has left


def kill_me():
    os.kill(os.getpid(), signal.SIGKILL)
