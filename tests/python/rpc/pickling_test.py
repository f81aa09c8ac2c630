#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pickler of workers of the backend TROUPE, beside PyTorch's."""
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
        data, tensors = _pickling.serialize(gone)
        kept = globals().pop("gone")
        try:
            told, expected = _pickling.deserialize(data, tensors), usual.deserialize(data, tensors)
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
