# SPDX-License-Identifier: BSD-3-Clause
"""Calls by name between this worker and other nodes, of C++ (`troupe node --load`) or Python. Tensors and plain values travel;
nothing is pickled. Needs rpc.init_rpc with the backend TROUPE."""
import ctypes
import struct
import threading
import time
import traceback
import typing

import torch

from . import _meeting
from ._library import native

PATIENCE = 60.0  # seconds to meet a node, unless given
LONGEST_STEP = 1.0  # seconds between two looks at Ctrl-C

# In the order of troupe::errc.
_NONE, _MALFORMED, _UNSUPPORTED, _UNKNOWN_PEER, _DOWN, _LATE, _NO_FUNCTION, *_, _REFUSED, _STOPPING, _MISUSE, _BUSY = range(15)
_EXCEPTIONS = {_UNSUPPORTED: TypeError, _UNKNOWN_PEER: ConnectionError, _DOWN: ConnectionError, _LATE: TimeoutError,
               _NO_FUNCTION: LookupError, _REFUSED: PermissionError, _STOPPING: ConnectionError, _MISUSE: ValueError}

_text, _handle, _to_handle = ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
_Function = ctypes.CFUNCTYPE(None, _handle)
_quick = ctypes.PyDLL(native._name)  # calls that take no time keep the interpreter's lock
for _library, _name, _types, _result in (
    (_quick, "peer_code", (), ctypes.c_int),
    (_quick, "function_add", (_text, _Function), _text),
    (_quick, "message_new", (), _handle),
    (_quick, "message_fill", (_handle, ctypes.c_int, _to_handle, _text, ctypes.c_size_t), None),
    (_quick, "message_fail", (_handle, _text), None),
    (_quick, "message_called", (_handle,), _text),
    (_quick, "message_caller", (_handle,), _text),
    (_quick, "message_values", (_handle, ctypes.POINTER(ctypes.c_size_t)), _handle),
    (native, "message_drop", (_handle,), None),
    (native, "peer_join", (_text, ctypes.c_int, ctypes.c_double), _text),
    (native, "peer_find", (_text, ctypes.c_double), _text),
    (native, "peer_call", (_text, _text, _handle, ctypes.c_double, _to_handle), _text),
    (native, "peer_create", (_text, _text, _handle, ctypes.c_double, _to_handle), _text),
    (native, "peer_wait", (_handle, ctypes.c_double, _to_handle), _text),
    (native, "peer_drop", (_handle,), None),
    (native, "module_new", (_handle, _to_handle), _text),
    (native, "module_call", (_handle, _text, _handle, ctypes.c_double, _to_handle), _text),
    (native, "module_drop", (_handle,), None),
    (native, "gradients", (ctypes.c_int, _to_handle, _to_handle), _text),
    (native, "context_open", (_to_handle,), _text),
    (native, "context_backward", (_handle, ctypes.c_int, _to_handle, ctypes.c_bool, ctypes.c_bool, ctypes.c_double), _text),
    (native, "context_wait", (_handle, ctypes.c_double, ctypes.POINTER(ctypes.c_bool)), _text),
    (native, "context_gradient", (_handle, _handle, _to_handle), _text),
    (native, "context_drop", (_handle,), None),
):
    _entry = getattr(_library, "torchtroupe_" + _name)
    _entry.argtypes, _entry.restype = _types, _result


class Reply(typing.NamedTuple):
    """What a call returned, or a function returns: tensors and values."""
    tensors: tuple
    values: dict


def _check(error):
    if error is not None:
        raise _EXCEPTIONS.get(_quick.torchtroupe_peer_code(), RuntimeError)(error.decode(errors="replace"))


def _kind_of(name, value):
    """The number of the value's kind in troupe::attribute, and its entries."""
    if isinstance(value, bool):
        return 0, [value]
    for kind, types in ((1, int), (2, float), (3, str)):
        if isinstance(value, types):
            return kind, [value]
    if isinstance(value, (list, tuple)) and not any(isinstance(each, bool) for each in value):
        for kind, types in ((4, int), (5, (int, float)), (6, str)):
            if all(isinstance(each, types) for each in value):
                return kind, value
    raise TypeError(f"'{name}' can't travel: expected a bool, int, float, str, or a list of ints, floats or strs, got "
                    f"{type(value).__name__}; tensors are given by their position")


def _write_text(text):
    raw = text.encode("utf-8", "surrogateescape")
    return struct.pack("<I", len(raw)) + raw


def _write(values):
    all_bytes = []
    for name, value in values.items():
        kind, entries = _kind_of(name, value)
        all_bytes.append(_write_text(name) + struct.pack("<BI", kind, len(entries)))
        try:
            all_bytes += [_write_text(each) for each in entries] if kind in (3, 6) else [
                struct.pack(f"<{len(entries)}{'d' if kind in (2, 5) else 'q'}", *entries)]
        except struct.error:
            raise OverflowError(f"'{name}' can't travel: expected an int of 64 bits, got {value}") from None
    return b"".join(all_bytes)


def _read(raw):
    values, at = {}, 0

    def take(form):
        nonlocal at
        at += struct.calcsize("<" + form)
        return struct.unpack_from("<" + form, raw, at - struct.calcsize("<" + form))

    def text():
        return take(f"{take('I')[0]}s")[0].decode("utf-8", "surrogateescape")

    while at < len(raw):
        name, (kind, count) = text(), take("BI")
        entries = [text() for _ in range(count)] if kind in (3, 6) else list(take(f"{count}{'d' if kind in (2, 5) else 'q'}"))
        values[name] = entries if kind > 3 else bool(entries[0]) if kind == 0 else entries[0]
    return values


_tensors_of, _ = torch._C._jit_get_operation("torchtroupe::tensors")


def _handle_of(tensor):
    if tensor is not None and not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expected a tensor or None by position, got {type(tensor).__name__}; other values are given by name")
    if tensor is not None and tensor.layout is torch.sparse_coo:
        raise TypeError("a sparse tensor can't travel: give its indices and values")
    return None if tensor is None else tensor._cdata


def _listed(tensors):
    """The tensors themselves, which have to live while their handles are used. A tensor would give its rows."""
    if isinstance(tensors, torch.Tensor):
        raise TypeError("expected several tensors, as in [weight], got one tensor")
    return list(tensors)


def _fill(message, tensors, values):
    tensors = _listed(tensors)
    handles = (_handle * max(1, len(tensors)))(*(_handle_of(each) for each in tensors))
    raw = _write(values)
    _quick.torchtroupe_message_fill(message, len(tensors), handles, raw, len(raw))


def _content(message):
    """Tensors and values of the message at this address."""
    length = ctypes.c_size_t()
    raw = _quick.torchtroupe_message_values(message, ctypes.byref(length))
    return (tuple(_tensors_of(message)),
            _read(ctypes.string_at(raw, length.value)) if length.value else {})


class _Message:
    """Arguments that are given, or a result that has come."""

    def __init__(self, tensors, values):
        self.handle = _handle(_quick.torchtroupe_message_new())
        try:
            _fill(self.handle, tensors, values)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self.handle

    def __exit__(self, *_):
        native.torchtroupe_message_drop(self.handle)


def _tensors(ask):
    """The tensors of the message that `ask` makes."""
    message = _handle()
    _check(ask(ctypes.byref(message)))
    try:
        return _content(message.value)[0]
    finally:
        native.torchtroupe_message_drop(message)


class _Pending:
    def __init__(self, start, tensors, values):
        self.handle = _handle()
        with _Message(tensors, values) as message:
            _check(start(message, ctypes.byref(self.handle)))

    def result(self):
        message = _handle()
        while not message:
            _check(native.torchtroupe_peer_wait(self.handle, LONGEST_STEP, ctypes.byref(message)))
        try:
            return _content(message.value)
        finally:
            native.torchtroupe_message_drop(message)

    def __del__(self):
        if self.handle:
            native.torchtroupe_peer_drop(self.handle)


def _returned(pending):
    tensors, values = pending.result()
    if values:
        return Reply(tensors, values)
    return tensors[0] if len(tensors) == 1 else tensors


class Module:
    """A module on another node. It lives as long as this object."""

    def __init__(self, made_by):
        self._handle = _handle()
        made_by.result()
        _check(native.torchtroupe_module_new(made_by.handle, ctypes.byref(self._handle)))

    def call(self, method, /, *tensors, timeout=0.0, **values):
        """As Peer.call, for a method of the module."""
        start = lambda message, to: native.torchtroupe_module_call(self._handle, method.encode(), message, timeout, to)
        return _returned(_Pending(start, tensors, values))

    def __del__(self):
        if self._handle:
            native.torchtroupe_module_drop(self._handle)


class Peer:
    """A node, of C++ or a Python worker. See peer()."""

    def __init__(self, name):
        self.name = name

    def call(self, function, /, *tensors, timeout=0.0, **values):
        """Calls a function that the node has registered, and returns its tensor, its tensors, or, if it has values too, a
        Reply. Within a context the graphs of both sides are one. `timeout`: seconds; without it, that of the worker's
        requests."""
        start = lambda message, to: native.torchtroupe_peer_call(self.name.encode(), function.encode(), message, timeout, to)
        return _returned(_Pending(start, tensors, values))

    def create(self, kind, /, *, timeout=0.0, **values):
        """Makes a module of a type that the node has registered."""
        start = lambda message, to: native.torchtroupe_peer_create(self.name.encode(), kind.encode(), message, timeout, to)
        return Module(_Pending(start, (), values))


def peer(name, address=None, timeout=PATIENCE):
    """The node of this name, once it is known. `address`: joins this worker to the node at "HOST:PORT" first."""
    until = time.monotonic() + timeout
    if address is not None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f'peer: expected "HOST:PORT" with a port from 1 to 65535, got "{address}"')
        join = lambda: _check(native.torchtroupe_peer_join(host.encode(), int(port), timeout))
        _meeting.in_thread(join) if _meeting.is_main() else join()
    while True:
        left = until - time.monotonic()
        failed = native.torchtroupe_peer_find(name.encode(), max(0.001, min(left, LONGEST_STEP)))
        if failed is None or left <= LONGEST_STEP or _quick.torchtroupe_peer_code() != _UNKNOWN_PEER:
            _check(failed)
            return Peer(name)


_functions = {}
_of_thread = threading.local()


@_Function
def _serve(message):
    outer = getattr(_of_thread, "caller", None)
    try:
        _of_thread.caller = _quick.torchtroupe_message_caller(message).decode(errors="replace")
        tensors, values = _content(message)
        result = _functions[_quick.torchtroupe_message_called(message).decode()](*tensors, **values)
        if not isinstance(result, (Reply, torch.Tensor, dict, tuple, list, type(None))):
            raise TypeError(f"expected a tensor, a tuple of tensors, a dict of values, a Reply or None as the result, got "
                            f"{type(result).__name__}")
        if not isinstance(result, Reply):
            is_tensor, is_values = isinstance(result, torch.Tensor), isinstance(result, dict)
            result = Reply((result,) if is_tensor else () if is_values or result is None else tuple(result),
                           result if is_values else {})
        _fill(message, *result)
    except BaseException as error:  # goes to the caller
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        _quick.torchtroupe_message_fail(message, text.encode(errors="replace"))
    finally:
        _of_thread.caller = outer


def function(name):
    """A decorator that lets other nodes call the function by this name. It gets tensors by position and values by name, and
    returns a tensor, a tuple of tensors, a dict of values, a Reply or None."""

    def add(run):
        if name.startswith("torch.rpc"):
            raise ValueError(f"expected another name than '{name}': names that begin with torch.rpc are torchtroupe's own")
        _functions[name] = run
        _check(_quick.torchtroupe_function_add(name.encode(), _serve))
        return run

    return add


def caller():
    """The name of the node that has called the function in which this thread is; None outside such a function."""
    return getattr(_of_thread, "caller", None)


def gradients(leaves):
    """In a function that another node calls: what the passes of the call's context have left for each of these leaves of this
    worker. None for a leaf that no pass has reached."""
    leaves = _listed(leaves)
    handles = [_handle_of(each) for each in leaves]
    return _tensors(lambda to: native.torchtroupe_gradients(len(handles), (_handle * max(1, len(handles)))(*handles), to))


def gradient(leaf):
    """As gradients(), for one leaf."""
    return gradients([leaf])[0]


class context:
    """A context of calls by name without PyTorch's distributed autograd, for gradients of gradients. Requests of
    torch.distributed.rpc do not join it."""
    _handle = None

    def __enter__(self):
        self._handle = _handle()
        _check(native.torchtroupe_context_open(ctypes.byref(self._handle)))
        return self

    def __exit__(self, *_):
        native.torchtroupe_context_drop(self._handle)
        self._handle = None

    def backward(self, *roots, gradients=None, retain_graph=False, create_graph=False, timeout=0.0):
        """Runs a pass over all nodes. Gradients gather in the context. With create_graph, they have a graph over all nodes."""
        gradients = None if gradients is None else _listed(gradients)
        if gradients is not None and len(gradients) != len(roots):
            raise ValueError(f"expected a gradient for each of {len(roots)} roots, got {len(gradients)}")
        pairs = [_handle_of(each) for pair in zip(roots, gradients or [None] * len(roots)) for each in pair]
        handles = (_handle * max(1, len(pairs)))(*pairs)
        _check(native.torchtroupe_context_backward(self._handle, len(roots), handles, retain_graph, create_graph, timeout))
        ended = ctypes.c_bool(False)
        while not ended:
            _check(native.torchtroupe_context_wait(self._handle, LONGEST_STEP, ctypes.byref(ended)))

    def gradient(self, leaf):
        """The gradient of a leaf of this worker, or None."""
        return _tensors(lambda to: native.torchtroupe_context_gradient(self._handle, _handle_of(leaf), to))[0]
