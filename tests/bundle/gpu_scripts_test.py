# SPDX-License-Identifier: BSD-3-Clause
"""The Python scripts of gpu/check.sh on the CPU, for a moment: each row is there. packaging/bundle/CMakeLists.txt gives ctest this
test."""
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import subprocess
import sys
import types
import unittest

scripts = pathlib.Path(os.environ["TROUPE_SCRIPTS"])
sys.path.insert(0, str(scripts))
import real_models  # noqa: E402
import table  # noqa: E402


def rows(script, *words, expected_status=0):
    done = subprocess.run([sys.executable, "-W", "ignore", str(scripts / script), "--device", "cpu", "--quick", *words],
                          capture_output=True, text=True, timeout=200)
    assert done.returncode == expected_status, done.stdout + done.stderr
    found = [re.fullmatch(r"\| (.*) \| (.*) \| (.*) \| (.*) \|", line) for line in done.stdout.splitlines()]
    assert all(found), done.stdout
    return {each[1]: each.groups()[1:] for each in found}


class Rpc(unittest.TestCase):
    def test_each_row_has_both_sides(self):
        found = rows("rpc.py")
        prefix = "RPC, two processes on one device: "
        for side in ("troupe", "TensorPipe"):
            self.assertEqual(found.pop(f"{prefix}what {side} brings back, and its gradients"), ("same bits", "", ""))
        bars = {"a call with a small tensor of the device": "3.00", "a call with a small tensor of the CPU": ""}
        bars.update({f"a call with {size} KiB there and back": "1.20" for size in (1, 16, 64, 256)})
        bars.update({f"context, call and backward with {size} KiB": "5.00" for size in (1, 16)})
        self.assertEqual({name.removeprefix(prefix): bar for name, (_, _, bar) in found.items()}, bars)
        for result, ratio, _ in found.values():
            self.assertRegex(result, r"^TensorPipe [0-9.,]+ (µs|GB/s), troupe [0-9.,]+ (µs|GB/s)$")
            self.assertRegex(ratio, r"^[0-9]+\.[0-9]{2}(, \*\*short\*\*)?$")

    def test_a_device_that_is_not_there_is_a_failure_in_each_row(self):
        done = subprocess.run([sys.executable, "-W", "ignore", str(scripts / "rpc.py"), "--device", "cuda:77", "--quick"],
                              capture_output=True, text=True, timeout=200)
        self.assertEqual(done.stdout.count("**failed**: "), 10, done.stdout + done.stderr)


class RealModels(unittest.TestCase):
    def test_each_model_is_compared_and_measured(self):
        found = rows("real_models.py", "--preload", os.environ["TROUPE_PRELOAD"])
        self.assertRegex(found["real models on the preloaded engine"][0], r"^[1-9][0-9]* backward passes.*, and 0 left ")
        for name, (package, _, is_quick) in real_models.MODELS.items():
            if not importlib.util.find_spec(package):
                self.assertEqual(found[f"models of {package}"][0], "skipped: the package is not installed")
            elif is_quick:
                self.assertEqual(found[f"{name} ({package}), parameters after 3 steps"][0], "same bits")
                result, ratio, _ = found[f"{name} ({package}), a training step"]
                self.assertRegex(result, r"^PyTorch [0-9.]+ ms, troupe [0-9.]+ ms$")
                self.assertRegex(ratio, r"^[0-9]+\.[0-9]{2}$")

    def test_an_engine_that_runs_no_pass_is_a_failure(self):
        for report in ("", "troupe: 0 backward passes", "troupe: 6 backward passes in 1 s, and 1 left to PyTorch's engine"):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                real_models.compare([], None, types.SimpleNamespace(end=lambda: report))
            self.assertIn("| **failed**: ", printed.getvalue())


class Table(unittest.TestCase):
    def test_bits_that_differ_are_told(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            table.same("x", "a", "b")
            table.figure("y", "z", 1.19, 1.2)
        self.assertEqual(printed.getvalue(), "| x | **differs**: a and b |  |  |\n| y | z | 1.19, **short** | 1.20 |\n")


if __name__ == "__main__":
    unittest.main()
