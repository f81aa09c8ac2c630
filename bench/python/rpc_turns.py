# SPDX-License-Identifier: BSD-3-Clause
"""Steps of torch.distributed.rpc on troupe and on TensorPipe, in turns: two processes for each. TensorPipe's threads poll
without an end, so its processes are stopped while troupe's are measured."""
import multiprocessing
import os
import signal
import statistics
import tempfile
import time

import torch
import torch.distributed.rpc as rpc
import torchtroupe.rpc  # noqa: F401  registers the backend

SIDES = ("TROUPE", "TENSORPIPE")


def worker(side, rank, folder, asked, make_steps, prepare):
    """Worker 0 answers with the median seconds of a step, or with a text that says why there are none."""
    torch.set_num_threads(1)
    backend = rpc.BackendType[side]
    options = rpc.backend_registry.construct_rpc_backend_options(backend, init_method=f"file://{folder}/{side}")
    prepare(options, rank)
    try:
        rpc.init_rpc(f"worker{rank}", backend=backend, rank=rank, world_size=2, rpc_backend_options=options)
        steps = make_steps() if rank == 0 else {}
    except Exception as failed:
        if rank == 0:
            asked.send(text_of(failed))
        raise
    for name, seconds in iter(asked.recv, None) if rank == 0 else ():
        try:
            asked.send(median_of(steps[name], seconds))
        except Exception as failed:
            asked.send(text_of(failed))
    rpc.shutdown()


def text_of(failed):
    return f"{type(failed).__name__}: {' '.join(str(failed).split())}"


def median_of(run, seconds):
    times, until = [], time.perf_counter() + seconds
    run()
    while not times or time.perf_counter() < until:
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


class Turns:
    """The four processes. `make_steps()` is called in worker 0 of each side and gives functions by name. `prepare(options,
    rank)` changes the options of a worker. `patience`: seconds until a step without an answer is a failure."""

    def __init__(self, make_steps, prepare=lambda options, rank: None, patience=60):
        self.given, self.patience = (make_steps, prepare), patience
        self.lost = {}  # sides that no longer answer, and why

    def __enter__(self):
        context = multiprocessing.get_context("fork")
        self.folder = tempfile.TemporaryDirectory()
        self.lines = {side: context.Pipe() for side in SIDES}
        self.processes = {side: [context.Process(target=worker, daemon=True,
                                                 args=(side, rank, self.folder.name, self.lines[side][1], *self.given))
                                 for rank in (0, 1)] for side in SIDES}
        for each in self.all():
            each.start()
        return self

    def all(self):
        return [each for side in SIDES for each in self.processes[side]]

    def _let(self, side, how):
        for each in self.processes[side]:
            if each.is_alive():
                os.kill(each.pid, how)

    def ask(self, side, name, seconds):
        """The seconds of a step. RuntimeError says why there are none."""
        if side in self.lost:
            raise RuntimeError(self.lost[side])
        self._let("TENSORPIPE", signal.SIGSTOP if side == "TROUPE" else signal.SIGCONT)
        line = self.lines[side][0]
        line.send((name, seconds))
        until = time.monotonic() + self.patience
        while not line.poll(0.2):
            if time.monotonic() > until:
                self.lost[side] = f"{side} has no answer to {name} after {self.patience} s"
            elif not all(each.is_alive() for each in self.processes[side]):
                self.lost[side] = f"a process of {side} has ended"
            if side in self.lost:
                raise RuntimeError(self.lost[side])
        if isinstance(told := line.recv(), str):
            raise RuntimeError(told)
        return told

    def both(self, name, seconds, number):
        """One turn of each side; which side is first depends on whether the number is odd."""
        return {side: self.ask(side, name, seconds) for side in SIDES[::1 if number % 2 else -1]}

    def __exit__(self, *failed):
        self._let("TENSORPIPE", signal.SIGCONT)  # a process that is stopped does not end
        for side in SIDES:
            if failed[0] is None and side not in self.lost:
                self.lines[side][0].send(None)
            else:
                self._let(side, signal.SIGKILL)
        for each in self.all():
            each.join(self.patience)
        self.folder.cleanup()
