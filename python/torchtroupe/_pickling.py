# SPDX-License-Identifier: BSD-3-Clause
"""The pickler of torch.distributed.rpc, with fewer bytes and fewer steps of Python for each call.

What it takes and refuses is as with PyTorch's. The workers of a group are of one version, so they all know the functions
that the bytes name."""
import copyreg
import io
import pickle

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
_known = -1  # how many classes had reducers when _reducers was made


def _tensor(index):
    return _tables.recv_tables[index]


def _reduce_tensor(tensor):
    table = _tables.send_tables
    table.append(tensor)
    return _tensor, (len(table) - 1,)


def _reduce_function(function):
    return copyreg.__newobj__, (internal.PythonUDF, *function)


def _find_reducers():
    global _known, _reducers
    own = dict(_usual._class_reducer_dict)
    _reducers = {**_usual._dispatch_table, torch.Tensor: _reduce_tensor, internal.PythonUDF: _reduce_function,
                 rpc.PyRRef: _usual._py_rref_reducer, rpc.RRef: _usual._rref_reducer, **own}
    _known = len(own)


def serialize(value):
    """Bytes, and the tensors of `value` that they name by their numbers."""
    global _known
    if isinstance(value, torch.jit.ScriptModule):
        _known = -1  # PyTorch's adds the class to its reducers
        return type(_usual).serialize(_usual, value)
    if len(_usual._class_reducer_dict) != _known:
        _find_reducers()
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
    outer = getattr(_tables, "recv_tables", None)
    _tables.recv_tables = tensors
    try:
        try:
            return pickle.loads(data)
        except AttributeError as missing:  # a function that this worker lacks
            told = AttributeError(f"{missing}{WHY_MISSING}")
            told.__cause__ = missing
            return told
        except BaseException as raised:
            if isinstance(raised, Exception) or not _meeting.is_main():
                raise
            interrupts.append(raised)  # of a handler of a signal: not of these bytes
            return pickle.loads(data)
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
