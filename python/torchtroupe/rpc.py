# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed.rpc on nodes of troupe: the options and the workers of rpc.BackendType.TROUPE (_backend.py)."""
import ctypes
import os
import threading
import time
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc

from ._library import has_rpc

if not has_rpc():
    raise ImportError(f"torchtroupe: the torch {torch.__version__} in {os.path.dirname(torch.__file__)} was built without RPC "
                      "(USE_RPC=1). RpcOptions and workers need a torch with RPC")
from torch._C._distributed_rpc import _get_current_rpc_agent, _set_and_start_rpc_agent
from torch.distributed.rpc import api, constants
from torch.distributed.rpc.internal import RPCExecMode

from . import _meeting, _pickling
from ._library import native

SHORTEST_STEP = 0.05  # seconds between two tries
LONGEST_START = 1800  # seconds, where requests have no limit
LONGEST_STEP = 1.0  # seconds between two looks at Ctrl-C
FOR_EVER = 1e9  # seconds
PATIENCE_WITH_RREFS = 1  # seconds for workers that have RRefs to values of a worker that leaves
PATIENCE_WITH_MEMBERS = (0.5, 5)  # seconds for each member of a group without a fixed size: most are there or have ended

_quick = ctypes.PyDLL(native._name)  # calls that take no time keep the interpreter's lock
for _name in ("await_at_once", "note_callback", "raise_of_signal"):
    getattr(_quick, "torchtroupe_rpc_" + _name).restype = None
_quick.torchtroupe_rpc_await_at_once.argtypes = [ctypes.c_bool]
_error = ctypes.c_char_p
for _name, _types, _result in (
    ("open", (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_double,
              ctypes.POINTER(ctypes.c_void_p)), _error),
    ("port", (ctypes.c_void_p,), ctypes.c_int),
    ("join", (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_double), _error),
    ("add", (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_double), _error),
    ("show", (ctypes.c_void_p,), _error),
    ("loss", (), _error),
    ("wait", (ctypes.c_double,), ctypes.c_bool),
    ("drop", (ctypes.c_void_p, ctypes.c_bool), _error),
):
    _function = getattr(native, "torchtroupe_rpc_" + _name)
    _function.argtypes, _function.restype = _types, _result


class RpcOptions(rpc.RpcBackendOptions):
    """Options of a worker of torch.distributed.rpc on troupe. ValueError says which one is wrong; init_rpc() raises
    RuntimeError for those that the node refuses, as for a file that can't be read.

    num_worker_threads   requests that run at once, without those that wait for other workers; 16
    rpc_timeout          seconds until a request fails, 0 for no limit, and until init_rpc() fails; 60
    init_method          URL of the store by which workers meet: "env://" (MASTER_ADDR, MASTER_PORT), "tcp://HOST:PORT",
                         "file://PATH"
    device_maps          {worker: {device here: device there}} for tensors of requests; results come back the other way; CPUs
                         alone
    devices              devices of this worker that the maps may name; all if not given
    host, port           where the worker listens: this machine alone; 0 is any free port
    advertise            the address by which other workers reach this one; `host` if not given
    certificates         path of the worker's kit of `troupe certs node NAME`, for the worker of this name. Workers with kits
                         prove themselves and encrypt. Without a kit, only workers of the same user and machine are let in
    revoked, policy      paths of the list of revoked certificates, and of what each role may do; none
    heartbeat_ms         milliseconds between heartbeats: three without an answer, and the worker is lost; 1000, four times as
                         long as for C++ nodes, because workers that start or import Python share the cores for seconds
    node                 further options of the node (docs/options.md), such as ["--log-level=info"]. The log has only errors if
                         not given: errors of requests say the rest"""

    def __init__(self, *, num_worker_threads=constants.DEFAULT_NUM_WORKER_THREADS,
                 rpc_timeout=constants.DEFAULT_RPC_TIMEOUT_SEC, init_method=constants.DEFAULT_INIT_METHOD,
                 device_maps=None, devices=None, host="127.0.0.1", port=0, advertise="",
                 certificates="", revoked="", policy="", heartbeat_ms=1000, node=()):
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads < 1:
            raise ValueError(f"RpcOptions: expected at least one of num_worker_threads, got {num_worker_threads}")
        for each in (certificates, revoked, policy):
            if each and not os.path.isfile(each):
                raise ValueError(f"RpcOptions: expected the path of a file, and there is no file {each}")
        if host in ("0.0.0.0", "::") and not advertise:
            raise ValueError(f"RpcOptions: expected `advertise` beside host={host}: the address by which other workers reach "
                             "this one")
        self.num_worker_threads = num_worker_threads
        self.device_maps = {}
        self.devices = [torch.device(each) for each in devices or ()]
        self.host, self.advertise = host, advertise
        self.words = ["--log-level=error", f"--host={host}", f"--port={port}", f"--workers={num_worker_threads}",
                      f"--heartbeat-ms={heartbeat_ms}"]
        self.words += [f"--{name}={value}" for name, value in
                       (("advertise", advertise), ("certificates", certificates), ("revoked", revoked), ("policy", policy))
                       if value]
        given = {each.split("=")[0] for each in node}
        if own := given & {"--name", "--host", "--port", "--advertise"}:
            raise ValueError(f"RpcOptions: expected {', '.join(sorted(own))} as options of their own (the name in init_rpc), "
                             "not in `node`")
        self.words = [each for each in self.words if each.split("=")[0] not in given] + list(node)
        for to, device_map in (device_maps or {}).items():
            self.set_device_map(to, device_map)

    def set_device_map(self, to, device_map):
        """Adds to the map of the devices of this worker to those of worker `to`. ValueError if two devices lead to one."""
        merged = dict(self.device_maps.get(to, {}))
        merged.update({torch.device(here): torch.device(there) for here, there in device_map.items()})
        if len(set(merged.values())) != len(merged):
            raise ValueError(f"the device map for worker '{to}' leads two devices to one: {merged}")
        self.device_maps[to] = merged

    def check_devices(self, gpus=None):
        """ValueError if a device map names a device that is missing, or a worker. `gpus`: how many each worker of the group
        has."""
        for to, device_map in self.device_maps.items():
            if gpus is not None and to not in gpus:
                raise ValueError(f"expected device maps for workers of the group ({', '.join(gpus)}), got one for '{to}'")
            for here, there in device_map.items():
                self._check_device(to, here, torch.cuda.device_count(), "this worker")
                if gpus is not None:
                    self._check_device(to, there, gpus[to], f"worker '{to}'")
                if self.devices and here not in self.devices:
                    raise ValueError(f"the device map for worker '{to}' names {here}, and `devices` has only {self.devices}")

    @staticmethod
    def _check_device(to, device, gpus, where):
        if device.type == "cuda" and (device.index or 0) >= gpus:
            raise ValueError(f"the device map for worker '{to}' names {device}, and {where} has {gpus} GPUs that PyTorch "
                             "sees. Mend the map, or check CUDA_VISIBLE_DEVICES and the build of torch")

    def node_words(self):
        return self.words + [f"--device-map={to}:" + ",".join(f"{here}={there}" for here, there in pairs.items())
                             for to, pairs in self.device_maps.items()]


class _Worker:
    """The native agent while init_rpc runs."""

    def __init__(self, name, rank, world_size, options):
        words = [f"--name={name}", *options.node_words()]
        self.handle = ctypes.c_void_p()
        self.until = time.monotonic() + _patience(options)
        texts = (ctypes.c_char_p * len(words))(*(each.encode() for each in words))
        _check(native.torchtroupe_rpc_open(len(words), texts, name.encode(), rank, world_size, options.rpc_timeout,
                                           ctypes.byref(self.handle)))
        self.address = f"{options.advertise or options.host} {native.torchtroupe_rpc_port(self.handle)}"

    def join(self, address, patience=None):
        host, port = address.rsplit(" ", 1)
        self._in_steps(lambda seconds: native.torchtroupe_rpc_join(self.handle, host.encode(), int(port), seconds), patience)

    def add(self, name, rank, store):
        """Waits longer than join(), so that a worker that can't join can say why."""
        self._in_steps(lambda seconds: native.torchtroupe_rpc_add(self.handle, name.encode(), rank, seconds),
                       self.until - time.monotonic() + 2 * LONGEST_STEP, store)

    def _in_steps(self, run, patience=None, store=None):
        until = self.until if patience is None else time.monotonic() + patience
        while True:
            if store:
                _meeting.check_failure(store)
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
        _pickling.install()
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


def construct_options(rpc_timeout, init_method, num_worker_threads=constants.DEFAULT_NUM_WORKER_THREADS, **others):
    known = {name: value for name, value in others.items() if name not in ("_transports", "_channels")}
    if len(known) < len(others):
        warnings.warn("init_rpc: _transports and _channels are TensorPipe's, and change nothing here", stacklevel=2)
    return RpcOptions(rpc_timeout=rpc_timeout, init_method=init_method, num_worker_threads=num_worker_threads, **known)


def init_backend(store, name, rank, world_size, rpc_backend_options):
    if not isinstance(store, dist.Store):
        raise TypeError(f"`store` must be a c10d::Store. {store}")
    if not isinstance(rpc_backend_options, RpcOptions):
        raise TypeError(f"`rpc_backend_options` must be a `torchtroupe.RpcOptions`. {rpc_backend_options}")
    _meeting.check_kind(store, world_size)
    return _init_group(store, name, rank, world_size, rpc_backend_options) if world_size else _init_alone(
        store, name, rank, rpc_backend_options)


def _init_group(store, name, rank, world_size, options):
    with _meeting.telling_failures(store, name, rank, world_size):
        members = _meeting.members_of_group(store, name, rank, world_size, _patience(options))
        options.check_devices({each["name"]: each["gpus"] for each in members.values()})
        worker = _Worker(name, rank, world_size, options)
        try:
            if rank == 0:
                store.set("troupe/address", worker.address)
            else:
                worker.join(_meeting.get(store, "troupe/address", worker.until,
                                         f"the address of worker '{members[0]['name']}'"))
            for other in range(world_size):
                worker.add(members[other]["name"], other, store)
            agent = worker.hand_over()
        except BaseException:
            worker.drop(True)
            raise
        try:
            if store.add("troupe/ready", 1) == world_size:
                store.set("troupe/go", "go")
            _meeting.get(store, "troupe/go", worker.until, f"all {world_size} workers")
        except BaseException:
            api._finalize_shutdown()
            raise
        return agent


def _init_alone(store, name, rank, options):
    """Starts or joins a group without a fixed size."""
    global _members
    options.check_devices()
    worker = _Worker(name, rank, 0, options)
    members = None
    try:
        members = _meeting.Members(store, name, worker.address)
        _join_any(worker, members)
        agent = worker.hand_over()
    except BaseException:
        if members:
            members.leave()
        worker.drop(True)
        raise
    _members = members
    return _AloneAtTheEnd(agent)


def _join_any(worker, members):
    """Joins the newest member that can be reached: it knows all others."""
    for patience in PATIENCE_WITH_MEMBERS:
        failed = None  # members may leave meanwhile
        for other in members.others(worker.until):
            try:
                return worker.join(other["address"], patience)
            except RuntimeError as error:
                failed = error
    if failed:
        raise failed


def _finalize_shutdown():
    global _members
    members, _members = _members, None
    if members:
        members.leave()
    try:
        _usual_end()
    finally:
        _pickling.uninstall()


def _give_back_rrefs():
    """As PyTorch's. In a group without a fixed size, _join() does this."""
    if not _members:
        _usual_giving_back()


def init_rpc(usual, name, backend, rank, world_size, options):
    """`usual`: PyTorch's init_rpc."""
    if options is None:
        options = RpcOptions()
    if isinstance(options, getattr(rpc, "TensorPipeRpcBackendOptions", ())):
        options = RpcOptions(num_worker_threads=options.num_worker_threads, rpc_timeout=options.rpc_timeout,
                             init_method=options.init_method, device_maps=options.device_maps, devices=options.devices)
    if not isinstance(options, RpcOptions):
        return usual(name, backend, rank, world_size, options)  # which refuses them
    _meeting.check_path(options.init_method)
    with _meeting.patient_stores(_patience(options), world_size):
        return usual(name, backend, rank, world_size, options)


def _patience(options):
    """Seconds until init_rpc fails."""
    return options.rpc_timeout or LONGEST_START


def _join(agent, shutdown=False, timeout=0):
    """RpcAgent.join(), which Ctrl-C ends. A worker of a group without a fixed size gives its RRefs back once its requests have
    ended: an owner forgets no RRef that it still makes. Workers that have RRefs to values of this one may stay, so the wait for
    them is short."""
    until = time.monotonic() + timeout
    _meeting.in_thread(lambda: _usual_join(agent, shutdown, timeout))
    if _members and shutdown:
        _usual_giving_back(timedelta(seconds=PATIENCE_WITH_RREFS))
        left = max(0.001, until - time.monotonic()) if timeout else 0
        _meeting.in_thread(lambda: _usual_join(agent, shutdown, left))


class _Signal(threading.Event):
    """The event for which PyTorch's _all_gather waits: a lost worker ends the wait."""

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


def _invoke_rpc(to, func, rpc_type, *others):
    """As PyTorch's. The thread of rpc_sync itself reads the answer."""
    future = _invoke_any(to, func, rpc_type, *others)
    while rpc_type is RPCExecMode.SYNC and not native.torchtroupe_rpc_wait(LONGEST_STEP):
        _quick.torchtroupe_rpc_raise_of_signal()  # and Python looks at Ctrl-C
    _raise_what_came()
    return future


def _wait(future):
    """As PyTorch's, which Ctrl-C ends. The thread itself reads plain answers to its requests."""
    if not future.done():
        patience = LONGEST_STEP if _meeting.is_main() else FOR_EVER
        while not _wait_for(future, patience):
            _quick.torchtroupe_rpc_raise_of_signal()
        _raise_what_came()
    return _with_interrupt(lambda: _usual_wait(future))


def _with_interrupt(run):
    """A handler may raise its KeyboardInterrupt at the edges of PyTorch's code, while the thread reads an answer. PyTorch makes
    it an error of the request."""
    try:
        return run()
    except RuntimeError as error:
        if _meeting.is_main() and str(error).startswith(KeyboardInterrupt.__name__):
            raise KeyboardInterrupt from error
        raise


def _raise_what_came():
    """Raises what a handler of a signal has raised while the thread read an answer."""
    _quick.torchtroupe_rpc_raise_of_signal()
    if _pickling.interrupts and _meeting.is_main():
        raise _pickling.interrupts.pop()


def _then(future, callback):
    """As PyTorch's. From now on, a thread that waits reads no answer but the one for which rpc_sync waits."""
    _quick.torchtroupe_rpc_note_callback()
    return _usual_then(future, callback)


def _add_done_callback(future, callback):
    """As PyTorch's, with the effect of _then()."""
    _quick.torchtroupe_rpc_note_callback()
    _usual_add(future, callback)


def _to_here(rref, *given, **named):
    """As PyTorch's, which Ctrl-C ends."""
    hears, is_here = _meeting.is_main(), rref.is_owner()
    while hears and is_here and not _wait_for_value(rref, LONGEST_STEP):
        continue
    try:
        _quick.torchtroupe_rpc_await_at_once(hears and not is_here)
        value = _with_interrupt(lambda: _usual_to_here(rref, *given, **named))
        _raise_what_came()
        return value
    except RuntimeError:
        _quick.torchtroupe_rpc_raise_of_signal()
        raise
    finally:
        _quick.torchtroupe_rpc_await_at_once(False)


_wait_for, _ = torch._C._jit_get_operation("torchtroupe::wait")
_wait_for_value, _ = torch._C._jit_get_operation("torchtroupe::wait_for_value")
_usual_wait, torch._C.Future.wait = torch._C.Future.wait, _wait
_usual_then, torch._C.Future.then = torch._C.Future.then, _then
_usual_add, torch._C.Future.add_done_callback = torch._C.Future.add_done_callback, _add_done_callback
_usual_to_here, rpc.PyRRef.to_here = rpc.PyRRef.to_here, _to_here
_invoke_any, api._invoke_rpc = api._invoke_rpc, _invoke_rpc
_members = None  # of the group of this worker, if that group has no fixed size
_usual_giving_back, api._delete_all_user_and_unforked_owner_rrefs = (
    api._delete_all_user_and_unforked_owner_rrefs, _give_back_rrefs)
_usual_join, rpc.RpcAgent.join = rpc.RpcAgent.join, _join
_usual_end, api._finalize_shutdown = api._finalize_shutdown, _finalize_shutdown
_named_worker_info, api._to_worker_info = api._to_worker_info, _to_worker_info
api._all_gather_sequence_id_to_states.default_factory = _States
