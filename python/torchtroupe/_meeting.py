# SPDX-License-Identifier: BSD-3-Clause
"""How workers meet: by a store of c10d, in which each writes its name, its versions and its address. No wait outlasts its
deadline, and Ctrl-C ends each."""
import contextlib
import importlib
import json
import math
import os
import socket
import threading
import time
import uuid
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist

from ._library import version

SHORTEST_STEP = 0.005  # seconds, as all below: between two looks into the store
LONGEST_STEP = 0.2
LONGEST_TRY = 1.0  # to connect
LONGEST_FAREWELL = 2.0
FAILURE = "troupe/failed"
rendezvous = importlib.import_module("torch.distributed.rendezvous")  # a function has the same name
VERSIONS = {"torch": ".".join(torch.__version__.split(".")[:2]), "torchtroupe": version}


def is_main():
    """Whether this is the thread that hears of signals."""
    return threading.get_ident() == threading.main_thread().ident


def in_thread(run, seconds=math.inf, late=""):
    """run() on another thread, so that Ctrl-C ends the wait. Raises RuntimeError(late) after the seconds."""
    told = []

    def serve():
        try:
            told.append((run(), None))
        except BaseException as error:  # raised below
            told.append((None, error))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    until = time.monotonic() + seconds
    while thread.is_alive():
        if time.monotonic() > until:
            raise RuntimeError(late)
        thread.join(LONGEST_STEP)
    result, error = told[0]
    if error is not None:
        raise error
    return result


def _await_port(host, port, until):
    """Waits until somebody listens there. PyTorch's store would wait for half an hour."""
    while True:
        try:
            socket.create_connection((host, port), min(LONGEST_TRY, max(0.1, until - time.monotonic()))).close()
            return
        except OSError as error:
            if time.monotonic() > until:
                raise RuntimeError(f"init_rpc: the store at {host}:{port} can't be reached ({error}). Rank 0 holds the store: "
                                   "start that worker, or give init_method (MASTER_ADDR, MASTER_PORT) its address") from None
            time.sleep(LONGEST_STEP)


def _is_of_agent(host, port):
    """Whether torchrun's agent holds the store at the address. PyTorch looks at the address from 2.15 on."""
    usual = lambda *_: os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return getattr(rendezvous, "_agent_store_serves", usual)(host, port)


def _this_start(store, rank, world_size, until, seconds):
    """What the keys of this start of the group begin with. The store of torchrun's agents outlives the workers, which the
    agents start again, and two agents may count the starts differently. So rank 0 gives each start an id. The id that another
    worker finds may be that of an earlier start, in which rank 0 has not seen this worker."""
    started = int(os.environ.get("WORLD_SIZE", world_size))
    if world_size > started:
        raise RuntimeError(f"init_rpc: expected a world_size of {started} at most, got {world_size}: torchrun has started "
                           f"{started} workers")
    _check_rank(rank, world_size)
    mine = uuid.uuid4().hex
    if rank == 0:
        store.set("troupe/start", mine)
        others = [get(store, f"{mine}/{other}", until, _missing(other, world_size, seconds)) for other in range(1, world_size)]
        store.set(f"{mine}/seen", " ".join(others))
        return mine

    def seen():
        start = store.get("troupe/start").decode() if store.check(["troupe/start"]) else ""
        store.set(f"{start}/{rank}", mine)
        return start if store.check([f"{start}/seen"]) and mine in store.get(f"{start}/seen").decode() else None

    return _await(store, seen, until, f"all {world_size} workers of this start of the group: rank 0 has not seen them within "
                  f"{seconds:g} s. Start all of them, and give each a rank of its own below the world_size")


@contextlib.contextmanager
def patient_stores(seconds, world_size):
    """Stores that PyTorch opens meanwhile are there within the seconds, and wait for no workers."""
    usual = rendezvous._create_c10d_store

    def create(host, port, rank, _, timeout, use_libuv=True):
        is_of_agent = _is_of_agent(host, port)
        serves = rank == 0 and not is_of_agent
        until = time.monotonic() + seconds
        if not serves:
            _await_port(host, port, until)
        store = in_thread(
            lambda: dist.TCPStore(host, port, None, serves, timedelta(seconds=seconds), wait_for_workers=False,
                                  multi_tenant=True, use_libuv=use_libuv),
            seconds, f"init_rpc: {host}:{port} does not answer as a store within {seconds:g} s. Is another program there? Give "
            "init_method (MASTER_ADDR, MASTER_PORT) the address of the store")
        if not is_of_agent:
            return store
        # Workers of a group without a fixed size need not come together.
        if not world_size and int(os.environ.get("GROUP_WORLD_SIZE", "1")) > 1:
            warnings.warn("init_rpc: torchrun counts restarts on each host by itself, so workers of two hosts may miss each "
                          "other after a restart. Give world_size, or an init_method with a store of your own")
        start = (_this_start(store, rank, world_size, until, seconds) if world_size
                 else os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
        return dist.PrefixStore(start, store)

    rendezvous._create_c10d_store = create
    try:
        yield
    finally:
        rendezvous._create_c10d_store = usual


def check_path(init_method):
    """PyTorch waits for minutes for the folder of a file."""
    if init_method.startswith("file://"):
        folder = os.path.dirname(init_method[len("file://"):].split("?")[0])
        if not os.path.isdir(folder):
            raise RuntimeError(f"init_rpc: the store {init_method} can't be reached: there is no folder {folder}. Make the "
                               "folder, or correct init_method")


def _await(store, find, until, what):
    """What find() returns once that is not None. Raises RuntimeError, which names what was awaited, or the worker that has
    failed."""
    step = SHORTEST_STEP
    while True:
        try:
            found = find()
            failure = _failure(store) if found is None else ""
        except RuntimeError as error:  # c10d's errors
            raise RuntimeError(f"init_rpc: the store is lost while this worker waited for {what}. The worker that holds the "
                               f"store has ended: see its error ({error})") from None
        if found is not None:
            return found
        if failure or time.monotonic() > until:
            raise RuntimeError("init_rpc: " + (failure or f"waited in vain for {what}"))
        time.sleep(step)
        step = min(2 * step, LONGEST_STEP)


def get(store, key, until, what):
    """The value of the key once it is set."""
    return _await(store, lambda: store.get(key).decode() if store.check([key]) else None, until, what)


def _missing(rank, world_size, seconds):
    return (f"rank {rank}: expected {world_size} workers, and rank {rank} has not come within {seconds:g} s. Start that "
            "worker, give all workers the true world_size, and each a rank of its own")


@contextlib.contextmanager
def telling_failures(store, name, rank, world_size):
    """Tells all workers of a group of the first failure. Rank 0 may hold the store, so it waits until they know."""
    try:
        yield
    except BaseException as error:
        text = str(error).removeprefix("init_rpc: ") or type(error).__name__
        with contextlib.suppress(RuntimeError):
            store.compare_set(FAILURE, "", f"worker '{name}' has failed: {text}")
            until = time.monotonic() + LONGEST_FAREWELL
            store.add("troupe/told", 1)
            while rank == 0 and store.add("troupe/told", 0) < world_size and time.monotonic() < until:
                time.sleep(LONGEST_STEP)
        raise


def _failure(store):
    return store.get(FAILURE).decode() if store.check([FAILURE]) else ""


def check_failure(store):
    """Raises RuntimeError if a worker of the group has failed."""
    if failure := _failure(store):
        raise RuntimeError(f"init_rpc: {failure}")


def check_kind(store, world_size):
    """Raises RuntimeError if an earlier worker has a world_size and this one has none, or the other way round."""
    kind = "static" if world_size else "dynamic"
    if store.compare_set("troupe/kind", "", kind).decode() != kind:
        raise RuntimeError("init_rpc: RPC group mixes statically and dynamically initialized members which is not supported. "
                           "Give world_size to all workers, or to none")


def _describe(record):
    return ", ".join(f"{each} {record.get(each, '(unknown)')}" for each in VERSIONS)


def _check_versions(mine, other):
    if any(mine[each] != other.get(each) for each in VERSIONS):
        raise RuntimeError(f"init_rpc: expected one version of each package in all workers. Worker '{mine['name']}' has "
                           f"{_describe(mine)}; worker '{other.get('name')}' has {_describe(other)}. Install the same in both")


def _read(text):
    try:
        return json.loads(text)
    except ValueError:
        return {"name": text[-64:]}  # of another torchtroupe


def _check_rank(rank, world_size):
    if not 0 <= rank < world_size:
        raise RuntimeError(f"init_rpc: expected a rank from 0 to {world_size - 1} with a world_size of {world_size}, "
                           f"got {rank}")


def members_of_group(store, name, rank, world_size, timeout):
    """The record of each rank."""
    until = time.monotonic() + timeout
    mine = {"name": name, "world": world_size, "gpus": torch.cuda.device_count(), "id": uuid.uuid4().hex, **VERSIONS}
    found = _read(store.compare_set(f"troupe/name/{rank}", "", json.dumps(mine)).decode())
    _check_rank(rank, world_size)
    if found != mine:
        raise RuntimeError(f"init_rpc: rank {rank} is not unique: a worker '{found.get('name')}' came with it first, then a "
                           f"worker '{name}'. Give each worker a rank of its own, and each start of the group a store of "
                           "its own")
    all_members = {}
    for other_rank in range(world_size):
        other = _read(get(store, f"troupe/name/{other_rank}", until, _missing(other_rank, world_size, timeout)))
        _check_versions(mine, other)
        if other["world"] != world_size:
            raise RuntimeError(f"init_rpc: expected the same world_size in all workers. Worker '{name}' has {world_size}, "
                               f"worker '{other['name']}' has {other['world']}. Give both the true one")
        for rank_before, before in all_members.items():
            if before["name"] == other["name"]:
                raise RuntimeError(f"init_rpc: the worker name '{other['name']}' is not unique: ranks {rank_before} and "
                                   f"{other_rank} have it. Give each worker a name of its own")
        all_members[other_rank] = other
    return all_members


class Members:
    """The workers of a group without a fixed size."""

    def __init__(self, store, name, address):
        self.store = store
        self.mine = {"name": name, "address": address, **VERSIONS}
        self.number = store.add("troupe/members", 1)
        self._write(self.mine)

    def _write(self, record):
        self.store.set(f"troupe/member/{self.number}", json.dumps(record))

    def others(self, until):
        """The records of those that have come before and have not left, the newest first."""
        for number in range(self.number - 1, 0, -1):
            other = _read(get(self.store, f"troupe/member/{number}", until, "the address of a worker that has come before"))
            if other:
                _check_versions(self.mine, other)
                yield other

    def leave(self):
        with contextlib.suppress(RuntimeError):  # the store may have ended
            self._write({})
