# SPDX-License-Identifier: BSD-3-Clause
"""The pickler of torch.distributed.rpc, with fewer bytes and fewer steps of Python for each call.

What it takes and refuses is as with PyTorch's. The workers of a group are of one version, so they all know the functions
that the bytes name."""
import copyreg
import io
import pickle
import types

import torch
import torch.distributed.rpc as rpc
from torch.distributed.rpc import internal

from . import _meeting

_usual = internal._internal_rpc_pickler
_tables = internal._thread_local_tensor_tables  # PyTorch's, because reducers of programs use them too
WHY_MISSING = """ Default RPC pickler does not serialize
            function code. Ensure that UDFs are defined on both caller and
            callee modules."""  # PyTorch's words
interrupts = []  # what handlers of signals have raised meanwhile; the main thread raises it when it has read the answer
# Forms of the common values. No bytes of pickle begin with these.
_TENSOR = b"\0"  # the value is the only tensor beside the bytes
_CALL = b"\1"  # then pickled: a call's function, its arguments that are no tensors, those by name, the places of its tensors
_PLAIN = frozenset((type(None), bool, int, float, str, bytes))  # pickled without a name of a class or function
_COMMON = _PLAIN | {torch.Tensor, types.FunctionType, internal.PythonUDF}


def _tensor(index):
    return _tables.recv_tables[index]


def _reduce_tensor(tensor):
    table = _tables.send_tables
    table.append(tensor)
    return _tensor, (len(table) - 1,)


def _reduce_call(call):
    return copyreg.__newobj__, (internal.PythonUDF, *call)


def _of_common(value):
    """Bytes and tensors of a common value: few steps, and few names to look up. None for another value."""
    kind = type(value)
    if kind is torch.Tensor:
        return _TENSOR, [value]
    if kind in _PLAIN:
        return pickle.dumps(value), []
    # Of a function of Python only its name travels. A method of a tensor would take the tensor into the bytes.
    if kind is not internal.PythonUDF or type(value.func) is not types.FunctionType:
        return None
    if type(value.args) not in (tuple, list) or type(value.kwargs) is not dict:
        return None
    tensors, places, plain = [], [], []
    for place, each in enumerate(value.args):
        if type(each) is torch.Tensor:
            tensors.append(each)
            places.append(place)
        elif type(each) in _PLAIN:
            plain.append(each)
        else:
            return None
    if not all(type(each) in _PLAIN for each in value.kwargs.values()):
        return None
    if len(tensors) > 1 and len(set(map(id, tensors))) < len(tensors):
        return None  # what is one tensor here is one tensor there
    return _CALL + pickle.dumps((value.func, plain, value.kwargs, places)), tensors


def _call_of(data, tensors):
    function, given, by_name, places = pickle.loads(memoryview(data)[len(_CALL):])
    for place, each in zip(places, tensors, strict=True):
        given.insert(place, each)
    return internal.PythonUDF(function, tuple(given), by_name)


class _Reducers:
    """Those that are registered now."""

    def __init__(self):
        own = dict(_usual._class_reducer_dict)
        self.count = len(own)
        self.all = {**_usual._dispatch_table, torch.Tensor: _reduce_tensor, internal.PythonUDF: _reduce_call,
                    rpc.PyRRef: _usual._py_rref_reducer, rpc.RRef: _usual._rref_reducer, **own}
        self.leave_common = _COMMON.isdisjoint(own)  # none is for a common value


_known = None


def serialize(value):
    """Bytes, and the tensors of `value` that they name by their numbers."""
    global _known
    if isinstance(value, torch.jit.ScriptModule):
        _known = None  # PyTorch's adds the class to its reducers
        return type(_usual).serialize(_usual, value)
    known = _known
    if known is None or known.count != len(_usual._class_reducer_dict):
        known = _known = _Reducers()
    if known.leave_common and (found := _of_common(value)) is not None:
        return found
    written = io.BytesIO()
    pickler = pickle.Pickler(written)
    pickler.dispatch_table = known.all
    outer, tensors = getattr(_tables, "send_tables", None), []  # a reducer may serialize, too
    _tables.send_tables = tensors
    try:
        pickler.dump(value)
    finally:
        _restore("send_tables", outer)
    return written.getvalue(), tensors


def deserialize(data, tensors):
    if data == _TENSOR:
        return tensors[0]
    load = (lambda: _call_of(data, tensors)) if data[:1] == _CALL else lambda: pickle.loads(data)
    outer = getattr(_tables, "recv_tables", None)
    _tables.recv_tables = tensors
    try:
        try:
            return load()
        except AttributeError as missing:  # a function that this worker lacks
            told = AttributeError(f"{missing}{WHY_MISSING}")
            told.__cause__ = missing
            return told
        except BaseException as raised:
            if isinstance(raised, Exception) or not _meeting.is_main():
                raise
            interrupts.append(raised)  # of a handler of a signal: not of these bytes
            return load()
    finally:
        _restore("recv_tables", outer)


def _restore(name, outer):
    if outer is None:
        delattr(_tables, name)
    else:
        setattr(_tables, name, outer)


def install():
    _usual.serialize, _usual.deserialize = serialize, deserialize


def uninstall():
    for name in ("serialize", "deserialize"):
        vars(_usual).pop(name, None)
