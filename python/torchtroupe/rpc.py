# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed.rpc on nodes of troupe: the backend rpc.BackendType.TROUPE, and its options."""
import ctypes
import threading
import time
import uuid

import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc
from torch._C._distributed_rpc import _get_current_rpc_agent, _set_and_start_rpc_agent
from torch.distributed.rpc import api, backend_registry, constants

from ._library import native

DEFAULTS = ("--heartbeat-ms=1000", "--log-level=error")  # errors of requests say what the log would
SHORTEST_STEP = 0.05  # seconds between two tries
LONGEST_STEP = 1.0  # seconds between two looks at Ctrl-C

_error = ctypes.c_char_p
for _name, _types, _result in (
    ("open", (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_double,
              ctypes.POINTER(ctypes.c_void_p)), _error),
    ("port", (ctypes.c_void_p,), ctypes.c_int),
    ("join", (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_double), _error),
    ("add", (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_double), _error),
    ("show", (ctypes.c_void_p,), _error),
    ("loss", (), _error),
    ("drop", (ctypes.c_void_p, ctypes.c_bool), _error),
):
    _function = getattr(native, "torchtroupe_rpc_" + _name)
    _function.argtypes, _function.restype = _types, _result


class RpcOptions(rpc.RpcBackendOptions):
    """Options of a worker. Those of TensorPipe mean the same here; the others are those of a node (docs/options.md).

    host, advertise, port   where the worker listens, and the address by which others reach it; on this machine if not given
    certificates, revoked   the worker's kit of `troupe certs`: without it, only workers of the same user and machine are let in
    policy                  what the roles of the cluster may do
    node                    further options of the node, such as ["--log-level=info"]"""

    def __init__(self, *, num_worker_threads=constants.DEFAULT_NUM_WORKER_THREADS, rpc_timeout=constants.DEFAULT_RPC_TIMEOUT_SEC,
                 init_method=constants.DEFAULT_INIT_METHOD, device_maps=None, devices=None, host="127.0.0.1", port=0, advertise="",
                 certificates="", revoked="", policy="", node=()):
        super().__init__(rpc_timeout, init_method)
        self.num_worker_threads = num_worker_threads
        self.device_maps = {}
        self.devices = [torch.device(each) for each in devices or ()]
        self.host, self.advertise = host, advertise
        self.words = [f"--host={host}", f"--port={port}", f"--workers={num_worker_threads}"]
        self.words += [f"--{name}={value}" for name, value in
                       (("advertise", advertise), ("certificates", certificates), ("revoked", revoked), ("policy", policy)) if value]
        self.words += [word for word in DEFAULTS if not any(each.startswith(word.split("=")[0] + "=") for each in node)]
        self.words += node
        for to, device_map in (device_maps or {}).items():
            self.set_device_map(to, device_map)

    def set_device_map(self, to, device_map):
        """Adds to the map of the devices of this worker to those of worker `to`."""
        merged = dict(self.device_maps.get(to, {}))
        merged.update({torch.device(here): torch.device(there) for here, there in device_map.items()})
        if len(set(merged.values())) != len(merged):
            raise ValueError(f"the device map for worker '{to}' leads two devices to one: {merged}")
        self.device_maps[to] = merged

    def node_words(self):
        return self.words + [f"--device-map={to}:" + ",".join(f"{here}={there}" for here, there in pairs.items())
                             for to, pairs in self.device_maps.items()]


class _Worker:
    """The native agent while init_rpc runs."""

    def __init__(self, name, rank, world_size, options):
        words = [f"--name={name}", *options.node_words()]
        self.handle = ctypes.c_void_p()
        self.until = time.monotonic() + options.rpc_timeout
        texts = (ctypes.c_char_p * len(words))(*(each.encode() for each in words))
        _check(native.torchtroupe_rpc_open(len(words), texts, name.encode(), rank, world_size, options.rpc_timeout,
                                           ctypes.byref(self.handle)))
        self.address = f"{options.advertise or options.host} {native.torchtroupe_rpc_port(self.handle)}"

    def join(self, address, patience=None):
        host, port = address.rsplit(" ", 1)
        self._in_steps(lambda seconds: native.torchtroupe_rpc_join(self.handle, host.encode(), int(port), seconds), patience)

    def add(self, name, rank):
        self._in_steps(lambda seconds: native.torchtroupe_rpc_add(self.handle, name.encode(), rank, seconds))

    def _in_steps(self, run, patience=None):
        until = self.until if patience is None else time.monotonic() + patience
        while True:
            left = until - time.monotonic()
            failed = run(max(0.05, min(left, LONGEST_STEP)))
            if failed is None or left <= LONGEST_STEP:
                return _check(failed)
            time.sleep(SHORTEST_STEP)

    def hand_over(self):
        """Makes the agent PyTorch's, which starts it."""
        _check(native.torchtroupe_rpc_show(self.handle))
        agent = _get_current_rpc_agent()
        _check(native.torchtroupe_rpc_show(None))
        _set_and_start_rpc_agent(agent)
        self.drop(False)
        return agent

    def drop(self, ends):
        if self.handle:
            native.torchtroupe_rpc_drop(self.handle, ends)
            self.handle = None


class _AloneAtTheEnd:
    """What init_rpc sees of an agent whose group has no fixed size: its shutdown waits for nobody."""

    def __init__(self, agent):
        self.agent = agent

    def get_worker_infos(self):
        return [self.agent.get_worker_info()]


def _check(error):
    if error is not None:
        raise RuntimeError("init_rpc: " + error.decode(errors="replace"))


def _options(rpc_timeout, init_method, num_worker_threads=constants.DEFAULT_NUM_WORKER_THREADS, **others):
    known = {name: value for name, value in others.items() if not name.startswith("_")}  # TensorPipe's _transports, _channels
    return RpcOptions(rpc_timeout=rpc_timeout, init_method=init_method, num_worker_threads=num_worker_threads, **known)


def _init(store, name, rank, world_size, rpc_backend_options):
    if not isinstance(store, dist.Store):
        raise TypeError(f"`store` must be a c10d::Store. {store}")
    if not isinstance(rpc_backend_options, RpcOptions):
        raise TypeError(f"`rpc_backend_options` must be a `torchtroupe.RpcOptions`. {rpc_backend_options}")
    return _init_group(store, name, rank, world_size, rpc_backend_options) if world_size else _init_alone(
        store, name, rank, rpc_backend_options)


def _init_group(store, name, rank, world_size, options):
    names = _names_of_group(store, name, rank, world_size, options.rpc_timeout)
    worker = _Worker(name, rank, world_size, options)
    try:
        if rank == 0:
            store.set("troupe/address", worker.address)
        else:
            worker.join(_get(store, "troupe/address", f"the address of worker '{names[0]}'"))
        for other in range(world_size):
            worker.add(names[other], other)
        agent = worker.hand_over()
    except BaseException:
        worker.drop(True)
        raise
    try:
        if store.add("troupe/ready", 1) == world_size:
            store.set("troupe/go", "go")
        _get(store, "troupe/go", f"all {world_size} workers: one of them has failed to start")
    except BaseException:
        api._finalize_shutdown()
        raise
    return agent


def _names_of_group(store, name, rank, world_size, timeout):
    """The name of each rank. Every worker finds the same mistakes."""
    if not 0 <= rank < world_size:
        raise RuntimeError(f"init_rpc: expected a rank from 0 to {world_size - 1}, got {rank}")
    mine = f"{uuid.uuid4().hex} {name}"
    found = store.compare_set(f"troupe/name/{rank}", "", mine).decode()
    if found != mine:
        raise RuntimeError(f"init_rpc: rank {rank} of worker '{name}' is not unique: worker '{found.split(' ', 1)[1]}' has it")
    names = {}
    for other in range(world_size):
        try:
            names[other] = store.get(f"troupe/name/{other}").decode().split(" ", 1)[1]
        except RuntimeError as error:  # c10d's errors of stores are RuntimeErrors
            raise RuntimeError(f"init_rpc: expected {world_size} workers, and rank {other} has not come within {timeout:g} s. "
                               f"Start that worker, or give all workers the true world_size ({error})") from None
    for other, another in names.items():
        if list(names.values()).count(another) > 1:
            ranks = [str(each) for each, its in names.items() if its == another]
            raise RuntimeError(f"init_rpc: the worker name '{another}' is not unique: ranks {', '.join(ranks)} have it")
    return names


def _init_alone(store, name, rank, options):
    """Joins a group without a fixed size: the newest worker that can be reached knows all others."""
    worker = _Worker(name, rank, 0, options)
    try:
        number = store.add("troupe/members", 1)
        store.set(f"troupe/member/{number}", worker.address)
        failed = None
        for other in range(number - 1, 0, -1):
            try:
                worker.join(_get(store, f"troupe/member/{other}", "the address of a worker"), 5)
                failed = None
                break
            except RuntimeError as error:
                failed = error
        if failed:
            raise failed
        return _AloneAtTheEnd(worker.hand_over())
    except BaseException:
        worker.drop(True)
        raise


def _get(store, key, what):
    try:
        return store.get(key).decode()
    except RuntimeError as error:
        raise RuntimeError(f"init_rpc: waited for {what}: {error}") from None


class _Signal(threading.Event):
    """The event for which PyTorch's _all_gather waits: it waits no longer than a lost worker is unknown."""

    def wait(self, timeout=None):
        until = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = LONGEST_STEP if until is None else min(LONGEST_STEP, until - time.monotonic())
            if left <= 0:
                return False
            super().wait(left)
            loss = native.torchtroupe_rpc_loss()
            if loss is not None and not self.is_set():
                raise RuntimeError(loss.decode())
        return True


class _States(api.AllGatherStates):
    def __init__(self):
        super().__init__()
        self.proceed_signal = _Signal()


def _to_worker_info(to):
    """As PyTorch's, with which an id finds its worker on agents of TensorPipe alone."""
    if isinstance(to, int):
        for info in _get_current_rpc_agent().get_worker_infos():
            if info.id == to:
                return info
        raise RuntimeError(f"could not find destination {to}: this worker knows no worker of this id")
    return _named_worker_info(to)


_named_worker_info, api._to_worker_info = api._to_worker_info, _to_worker_info
api._all_gather_sequence_id_to_states.default_factory = _States
TROUPE = backend_registry.register_backend("TROUPE", _options, _init)
rpc.BackendType = backend_registry.BackendType  # registering has made a new enum
