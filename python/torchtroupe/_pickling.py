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
_reducers = {}
_has_usual = False  # no reducer of the program is for a usual value
_known = -1  # how many classes had reducers when _reducers was made
_TENSOR, _CALL = b"t", b"c"  # forms of the usual values; all others are pickled, and begin with pickle's own first byte
_PLAIN = frozenset((type(None), bool, int, float, str, bytes))  # are pickled without a name of a class or function
_FUNCTIONS = frozenset((types.FunctionType, types.BuiltinFunctionType))
_USUAL = _PLAIN | _FUNCTIONS | {torch.Tensor, internal.PythonUDF}


def _tensor(index):
    return _tables.recv_tables[index]


def _reduce_tensor(tensor):
    table = _tables.send_tables
    table.append(tensor)
    return _tensor, (len(table) - 1,)


def _reduce_function(function):
    return copyreg.__newobj__, (internal.PythonUDF, *function)


def _of_usual(value):
    """Bytes and tensors of a usual value: few steps, and few names to look up. None for another value."""
    kind = type(value)
    if kind is torch.Tensor:
        return _TENSOR, [value]
    if kind in _PLAIN:
        return pickle.dumps(value), []
    if kind is not internal.PythonUDF or type(value.func) not in _FUNCTIONS:
        return None
    tensors, places, plain = [], [], []
    for place, each in enumerate(value.args):
        if type(each) is torch.Tensor and not any(each is known for known in tensors):
            tensors.append(each)
            places.append(place)
        elif type(each) in _PLAIN:
            plain.append(each)
        else:
            return None
    for each in value.kwargs.values():
        if type(each) not in _PLAIN:
            return None
    return _CALL + pickle.dumps((value.func, plain, value.kwargs, places)), tensors


def _call_of(data, tensors):
    function, given, by_name, places = pickle.loads(memoryview(data)[len(_CALL):])
    for place, each in zip(places, tensors):
        given.insert(place, each)
    return internal.PythonUDF(function, tuple(given), by_name)


def _find_reducers():
    global _known, _reducers, _has_usual
    own = dict(_usual._class_reducer_dict)
    _reducers = {**_usual._dispatch_table, torch.Tensor: _reduce_tensor, internal.PythonUDF: _reduce_function,
                 rpc.PyRRef: _usual._py_rref_reducer, rpc.RRef: _usual._rref_reducer, **own}
    _known = len(own)
    _has_usual = _USUAL.isdisjoint(own)


def serialize(value):
    """Bytes, and the tensors of `value` that they name by their numbers."""
    global _known
    if isinstance(value, torch.jit.ScriptModule):
        _known = -1  # PyTorch's adds the class to its reducers
        return type(_usual).serialize(_usual, value)
    if len(_usual._class_reducer_dict) != _known:
        _find_reducers()
    if _has_usual and (found := _of_usual(value)) is not None:
        return found
    written = io.BytesIO()
    pickler = pickle.Pickler(written)
    pickler.dispatch_table = _reducers
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
