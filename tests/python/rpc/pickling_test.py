#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pickler of workers of the backend TROUPE, beside PyTorch's."""
import enum
import pickle
import unittest

import torch
import torchtroupe.rpc
from torch.distributed.rpc import internal
from torchtroupe import _pickling

usual = internal._InternalRPCPickler()


class Reduced:
    """A class with a reducer."""

    def __init__(self, inner):
        self.inner = inner


def restore(data, tensors):
    return Reduced(_pickling.deserialize(data, tensors))


def reduce(value):
    return restore, _pickling.serialize(value.inner)


def scale(x, by=1):
    return x * by


def given(*args, **kwargs):
    return args, kwargs


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [each for within in inner for each in tensors_in(within)]


class Word(str, enum.Enum):
    GO = "go"


def gone():
    return None


def there_and_back(value):
    return _pickling.deserialize(*_pickling.serialize(value))


class pickling(unittest.TestCase):
    def test_values_come_back_as_with_pytorch(self):
        for value in (None, 7, "text", {"a": [1.5, (2, b"3")]}, scale, torch.float32, torch.Size([2, 3])):
            with self.subTest(value=value):
                self.assertEqual(there_and_back(value), usual.deserialize(*usual.serialize(value)))

    def test_tensors_travel_beside_the_bytes(self):
        first, second = torch.rand(1000), torch.nn.Parameter(torch.rand(1000))
        data, tensors = _pickling.serialize([first, {"second": second, "again": first}])
        self.assertLess(len(data), 1000)
        self.assertIs(tensors[0], first)
        came = _pickling.deserialize(data, tensors)
        self.assertIs(came[0], first)
        self.assertIs(came[1]["again"], first)
        self.assertIsInstance(came[1]["second"], torch.nn.Parameter)
        self.assertTrue(torch.equal(came[1]["second"], second))

    def test_a_call_comes_back(self):
        x = torch.rand(2)
        came = there_and_back(internal.PythonUDF(scale, (x,), {"by": 3}))
        self.assertIsInstance(came, internal.PythonUDF)
        self.assertTrue(torch.equal(internal._run_function(came), 3 * x))

    def test_what_a_function_is_given_is_as_with_pytorch(self):
        x, y, known = torch.rand(2), torch.rand(3, requires_grad=True), torch.nn.Parameter(torch.rand(2))
        many = torch.rand(40).unbind()
        with_args = lambda args: internal.PythonUDF(given, args, {})
        call = lambda *args, **kwargs: internal.PythonUDF(given, args, kwargs)
        for make in (lambda: call(1, x, "two", y, None, 3.5, b"4", True, by=2), lambda: call(x, x), lambda: call(x=x), lambda: call(known),
                     lambda: call([x, [y]]), lambda: with_args([x, 1]), lambda: call(Word.GO, torch.float32),
                     lambda: call(internal.PythonUDF(scale, (x,), None)), lambda: with_args(iter([1, [2], x])),
                     lambda: with_args(zip([1, 2], [x, y])), lambda: call(*many)):
            came, expected = (internal._run_function(of.deserialize(*of.serialize(make()))) for of in (_pickling, usual))
            with self.subTest(expected=expected):
                self.assertEqual(str(came), str(expected))
                for each, other in zip(tensors_in(came), tensors_in(expected), strict=True):
                    self.assertIs(type(each), type(other))
                    self.assertTrue(each is other or torch.equal(each, other))
        same, again = internal._run_function(there_and_back(call(x, x)))[0]
        self.assertIs(same, again)

    def test_the_tensor_of_a_method_travels_beside_the_bytes(self):
        x = torch.rand(1000)
        data, tensors = _pickling.serialize(internal.PythonUDF(x.mul, (2,), {}))
        self.assertLess(len(data), 1000)
        self.assertIs(tensors[0], x)

    def test_a_message_with_too_few_tensors_is_an_error(self):
        for value in (torch.rand(1), internal.PythonUDF(given, (torch.rand(1), torch.rand(2)), {})):
            data, tensors = _pickling.serialize(value)
            with self.assertRaises((IndexError, ValueError)):
                _pickling.deserialize(data, tensors[1:])

    def test_bytes_of_every_protocol_of_pickle_are_read(self):  # of a pickler of the program
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            for value in (internal.PythonUDF(given, (1, 2), {}), {"a": 1}, "text", 7, None):
                self.assertEqual(_pickling.deserialize(pickle.dumps(value, protocol), []), value)

    def test_a_reducer_for_a_common_value_is_used(self):
        known = dict(internal._internal_rpc_pickler._class_reducer_dict)
        there_and_back(torch.rand(2))
        internal._internal_rpc_pickler._register_reducer(torch.Tensor, lambda tensor: (sum, (tensor.tolist(),)))
        try:
            came = there_and_back(internal.PythonUDF(given, (torch.ones(3),), {}))
        finally:
            internal._internal_rpc_pickler._class_reducer_dict = known
        self.assertEqual(came.args, (3.0,))

    def test_a_script_module_travels(self):
        module = torch.jit.script(torch.nn.Linear(2, 3))
        self.assertTrue(torch.equal(there_and_back(module).weight, module.weight))
        self.assertTrue(torch.equal(there_and_back([module])[0].weight, module.weight))  # its class is known now

    def test_a_reducer_may_be_registered_late_and_serialize_itself(self):
        there_and_back(1)
        internal._internal_rpc_pickler._register_reducer(Reduced, reduce)
        x, y = torch.rand(2), torch.rand(3)
        came = there_and_back([x, Reduced([y]), y])
        self.assertIs(came[0], x)
        self.assertIs(came[1].inner[0], y)
        self.assertIs(came[2], y)

    def test_a_function_that_is_missing_gives_the_error_of_pytorch(self):
        for value in (gone, internal.PythonUDF(gone, (), {})):
            sent = [(of, *of.serialize(value)) for of in (_pickling, usual)]
            kept = globals().pop("gone")
            try:
                told, expected = (of.deserialize(data, tensors) for of, data, tensors in sent)
            finally:
                globals()["gone"] = kept
            self.assertIsInstance(told, AttributeError)
            self.assertEqual(str(told), str(expected))

    def test_an_error_leaves_nothing_behind(self):
        with self.assertRaises(Exception):
            _pickling.serialize([torch.rand(1), lambda: None])
        self.assertEqual(len(_pickling.serialize(torch.rand(1))[1]), 1)
        self.assertFalse(hasattr(internal._thread_local_tensor_tables, "send_tables"))

    def test_pytorch_has_its_own_again_at_the_end(self):
        _pickling.install()
        self.assertIs(internal._internal_rpc_pickler.serialize, _pickling.serialize)
        _pickling.uninstall()
        self.assertEqual(internal._internal_rpc_pickler.serialize.__func__, internal._InternalRPCPickler.serialize)


if __name__ == "__main__":
    unittest.main()
