#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The engine by an import: what torchtroupe.install() does to the process, and what it says of a process that it can't serve.

Each test is a program of its own. Takes a Python with torch; torchtroupe is installed there or lies in PYTHONPATH."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
INSTALLED = pathlib.Path(__file__).parent / "as_installed"
ONE_PASS = """
import torch
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
"""
PRELOAD = os.environ.get("TROUPE_PRELOAD")  # libtroupe_preload.so


def run(program, **environment):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env={**os.environ, **environment}, text=True,
                          capture_output=True, timeout=300)


class EngineTest(unittest.TestCase):
    def passes(self, program, **environment):
        done = run(program, **environment)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done

    def test_install_and_uninstall_change_the_engine_and_no_bit(self):  # PE-1
        self.passes("""
            import torch, torchtroupe
            def gradient():
                x = torch.linspace(0.1, 1, 5).requires_grad_()
                (x.exp() * x.sin()).sum().backward()
                return x.grad
            def mapped():
                with open("/proc/self/maps") as maps:
                    return [line.split()[:2] for line in maps if "libtorch_" in line]
            before = mapped()
            expected = gradient()
            assert torchtroupe.report().passes == 0
            for round in range(3):
                torchtroupe.install()
                torchtroupe.install()
                assert torch.equal(gradient(), expected)
                assert torchtroupe.report().passes == round + 1, torchtroupe.report()
                torchtroupe.uninstall()
                torchtroupe.uninstall()
                assert torch.equal(gradient(), expected)
                assert torchtroupe.report().passes == round + 1, torchtroupe.report()
            assert torchtroupe.report().seconds > 0 and not torchtroupe.report().left
            assert mapped() == before, "the protection of libtorch's memory has changed"
            """)

    def test_a_call_that_the_loader_has_changed_is_taken_back(self):  # PE-1
        self.passes("""
            import ctypes, subprocess, torch, torchtroupe
            folder = torch.__path__[0] + "/lib/"
            relocations = subprocess.run(["readelf", "-rW", folder + "libtorch_python.so"], text=True, capture_output=True, check=True)
            offset, name = next((int(line.split()[0], 16), line.split()[4]) for line in relocations.stdout.splitlines()
                                if "JUMP_SLO" in line and "autograd6Engine7execute" in line)
            with open("/proc/self/maps") as maps:
                base = next(int(line.split("-")[0], 16) for line in maps if line.endswith("libtorch_python.so\\n"))
            slot = ctypes.c_void_p.from_address(base + offset)
            libtorchs = ctypes.cast(getattr(ctypes.CDLL(folder + "libtorch_cpu.so"), name), ctypes.c_void_p).value
            assert slot.value == libtorchs, "Python binds libtorch lazily, so a first pass on another thread could undo an install()"
            torchtroupe.install()
            ours = slot.value
            torchtroupe.uninstall()
            assert slot.value == libtorchs, "the loader may look the function up again, while a later install() writes the slot"
            torchtroupe.install()
            slot.value = libtorchs  # as the loader does
            torchtroupe.install()
            assert slot.value == ours
            """)

    def test_passes_of_cpp_run_on_the_engine_too(self):
        self.passes("""
            import torch, torchtroupe
            torchtroupe.install()
            x = torch.ones(3, requires_grad=True)
            torch.ops.aten._backward((x * 2).sum(), [])
            assert torchtroupe.report().passes == 1 and x.grad.tolist() == [2, 2, 2]
            """)

    def test_a_function_adds_to_the_buffers_of_its_inputs(self):
        self.passes("""
            import torch, torchtroupe
            class Doubled(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x * 2
                @staticmethod
                def backward(ctx, gradient):
                    buffer, = ctx.input_grad_buffers
                    found.append(buffer.tolist())
                    buffer.add_(gradient * 2)
            def gradient(start):
                x = torch.ones(2, requires_grad=True)
                start((Doubled.apply(x) + x * 7).sum())
                return x.grad.tolist()
            if hasattr(torch.autograd.function.FunctionCtx, "input_grad_buffers"):  # from PyTorch 2.15 on
                torchtroupe.install()
                for start in (torch.Tensor.backward, lambda loss: torch.ops.aten._backward(loss, [])):
                    found = []
                    assert gradient(start) == [9, 9] and found == [[7, 7]], found
                assert torchtroupe.report().passes == 2
            """)

    def test_a_pass_that_is_left_is_counted_and_warned_of_once(self):
        self.passes("""
            import torch, torchtroupe, warnings
            torchtroupe.install()
            def backward():
                x = torch.ones(3, requires_grad=True)
                (x * 2).sum().backward()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with torch.autograd.set_detect_anomaly(True):
                    backward()
                    backward()
                with torch._dynamo.compiled_autograd._enable(lambda graph: graph):
                    backward()
                    backward()
                torch.ones(1, requires_grad=True).backward()
            said = [str(each.message) for each in caught if "torchtroupe" in str(each.message)]
            assert len(said) == 2 and "anomaly mode" in said[0] and "compiled autograd" in said[1], said
            assert torchtroupe.report().left == {"anomaly mode": 2, "compiled autograd": 2, "a single function": 1}
            assert torchtroupe.report().passes == 0 and torchtroupe.report().seconds == 0, torchtroupe.report()
            """)

    def test_compiled_autograd_that_is_on_before_is_respected(self):
        self.passes("""
            import torch, torchtroupe
            x = torch.ones(3, requires_grad=True)
            with torch._dynamo.compiled_autograd._enable(lambda graph: graph):
                torchtroupe.install()
                (x * 2).sum().backward()
            assert torchtroupe.report().left == {"compiled autograd": 1} and x.grad.tolist() == [2, 2, 2]
            (x * 2).sum().backward()
            assert torchtroupe.report().passes == 1
            """)

    def test_threads_may_run_passes_while_the_engine_changes(self):  # PE-1
        self.passes("""
            import threading, torch, torchtroupe
            torch.set_num_threads(1)
            torchtroupe.install()
            def work():
                while not done.is_set():
                    x = torch.linspace(0.1, 1, 5).requires_grad_()
                    (x.exp() * x.sin()).sum().backward()
                    found[threading.current_thread()] = found.get(threading.current_thread(), []) + [x.grad]
            done = threading.Event()
            found = {}
            threads = [threading.Thread(target=work) for _ in range(3)]
            for each in threads:
                each.start()
            while min(map(len, [found.get(each, []) for each in threads])) < 100:
                torchtroupe.uninstall()
                torchtroupe.install()
                before = torchtroupe.report().passes
                (torch.ones(2, requires_grad=True) * 2).sum().backward()
                assert torchtroupe.report().passes > before
            done.set()
            for each in threads:
                each.join()
            first = found[threads[0]][0]
            assert all(torch.equal(each, first) for grads in found.values() for each in grads)
            """)

    def test_the_short_way_through_backward_has_the_errors_of_the_long_one(self):
        self.passes("""
            import torch, torchtroupe
            class Sub(torch.Tensor):
                pass
            seen = []
            class Mode(torch.overrides.TorchFunctionMode):
                def __torch_function__(self, function, types, arguments=(), named=None):
                    seen.append(function.__name__)
                    return function(*arguments, **(named or {}))
            def x():
                return torch.ones(2, requires_grad=True)
            def in_mode():
                loss = x().sum()
                with Mode():
                    torch.autograd.backward(loss)
                return list(seen), seen.clear()
            cases = [lambda: x().backward(), lambda: (x() * 1j).sum().backward(), lambda: torch.ones(()).backward(),
                     lambda: torch.autograd.backward(x() * 2, torch.ones(3)), lambda: torch.autograd.backward([]), in_mode,
                     lambda: torch.autograd.backward(3), lambda: torch.func.grad(lambda y: y.sum().backward() or y.sum())(x()),
                     lambda: torch.ones(2).as_subclass(Sub).requires_grad_().sum().backward(),
                     lambda: torch.autograd.backward(x().sum(), grad_tensors=torch.ones(()), grad_variables=torch.ones(())),
                     lambda: torch.autograd.backward(x().sum(), inputs=[]), lambda: x().sum().backward(inputs=x()),
                     lambda: (torch.sparse_coo_tensor([[0]], [2.0], (1,)).requires_grad_() * 2).backward(),
                     lambda: x().sum().backward(torch.ones(2)), lambda: x().sum().backward(create_graph=True)]
            def outcomes():
                result = []
                for case in cases:
                    try:
                        result.append(repr(case()))
                    except Exception as error:
                        result.append(f"{type(error).__name__}: {error}")
                return result
            expected = outcomes()
            assert sum("Error" in each for each in expected) >= 8, expected
            torchtroupe.install()
            assert outcomes() == expected, "\\n".join(f"{a}\\n  {b}" for a, b in zip(expected, outcomes()) if a != b)
            """)

    def test_the_short_way_leaves_pytorchs_function_in_its_place(self):
        self.passes("""
            import torch, torchtroupe
            from torch._dynamo.testing import CompileCounter
            function = torch.autograd.backward
            handled = {torch.autograd.backward: lambda *arguments, **named: "handled"}
            class Sub(torch.Tensor):
                @classmethod
                def __torch_function__(cls, function, types, arguments=(), named=None):
                    if function in handled:
                        return handled[function](*arguments, **(named or {}))
                    return super().__torch_function__(function, types, arguments, named or {})
            weight = torch.ones(3, requires_grad=True)
            def step(x):
                loss = (x * weight).sum()
                loss.backward()
                return loss * 2
            def outcomes():
                torch._dynamo.reset()
                counter = CompileCounter()
                compiled = torch.compile(step, backend=counter)
                for type in (torch.float32, torch.float32, torch.float64):
                    compiled(torch.ones(3, dtype=type))
                return torch.autograd.backward(torch.ones(2).as_subclass(Sub).requires_grad_().sum()), counter.frame_count, counter.op_count
            expected = outcomes()
            assert expected[0] == "handled" and expected[1] > 1, expected
            code = function.__code__
            torchtroupe.install()
            assert torch.autograd.backward is function and function.__code__ is not code
            assert outcomes() == expected, (outcomes(), expected)
            torchtroupe.uninstall()
            assert function.__code__ is code
            torchtroupe.install()
            assert torch.jit._builtins._find_builtin(torch.autograd.backward) == "aten::backward"  # what TorchScript asks
            """)

    def test_a_function_in_the_place_of_backward_is_called(self):
        self.passes("""
            import functools, torch
            pytorchs = torch.autograd.backward
            @functools.wraps(pytorchs)
            def counting(*arguments, **named):
                global calls
                calls += 1
                return pytorchs(*arguments, **named)
            calls = 0
            torch.autograd.backward = counting
            import torchtroupe
            torchtroupe.install()
            x = torch.ones(3, requires_grad=True)
            (x * 2).sum().backward()
            assert calls == 1 and torchtroupe.report().passes == 1
            torchtroupe.uninstall()
            assert torch.autograd.backward is counting
            """)

    def test_dynamo_compiles_around_a_backward(self):
        self.passes("""
            import torch, torchtroupe
            torchtroupe.install()
            weight = torch.ones(3, requires_grad=True)
            @torch.compile(backend="eager")
            def step(x):
                loss = (x * weight).sum()
                loss.backward()
                return loss * 2
            for _ in range(3):
                assert step(torch.ones(3)).item() == 6
            assert weight.grad.tolist() == [3, 3, 3] and torchtroupe.report().passes == 3
            """)

    def test_small_tensors_reuse_the_memory_that_their_thread_has_freed(self):  # MB-1, MB-2
        self.passes("""
            import ctypes, gc, os, threading, time, torch, torchtroupe
            class Mallinfo(ctypes.Structure):
                _fields_ = [(name, ctypes.c_size_t) for name in "arena free fast mapped_blocks mapped unused fast_bytes used rest top".split()]
            mallinfo = ctypes.CDLL(None).mallinfo2
            mallinfo.restype = Mallinfo
            gc.disable()
            torch.empty(8)
            def kept(count, size, free=lambda tensors: tensors.clear()):
                # bytes that freeing `count` tensors of `size` bytes does not give back to the system's allocator
                before = mallinfo().used
                tensors = [torch.empty(size, dtype=torch.uint8) for _ in range(count)]
                made = mallinfo().used - before
                assert made > count * size * (0 if size > 65536 else 0.9), made
                free(tensors)
                return mallinfo().used - before
            def free_elsewhere(tensors):
                thread = threading.Thread(target=tensors.clear)
                thread.start()
                thread.join()  # the thread still ends in C
                until = time.monotonic() + 60
                while os.path.exists(f"/proc/self/task/{thread.native_id}"):
                    assert time.monotonic() < until
                    os.sched_yield()
            small, mib = 1 << 14, 1 << 20
            assert kept(1000, small) < mib / 2
            torchtroupe.install(reuse_memory=False)
            assert kept(1000, small) < mib / 2
            torchtroupe.install()
            assert kept(1000, small, free_elsewhere) < mib / 2, "a thread that has ended keeps blocks"
            assert kept(1000, 65537 * 2) < mib / 2, "large tensors are the system's"
            # the same blocks again: tensors of this size take none of the system's memory
            held = kept(1000, small)
            assert 4 * mib < held <= 8.2 * mib, ("16 MB were freed", held)
            before = mallinfo().used
            some = [torch.full((small // 4,), float(i)) for i in range(400)]
            assert mallinfo().used - before < 3 * mib
            assert all(bool((each == i).all()) for i, each in enumerate(some))
            assert len({each.data_ptr() for each in some}) == 400 and not any(each.data_ptr() % 64 for each in some)
            # blocks of a size that is not asked for any more make room for others
            full = [torch.empty(small, dtype=torch.uint8) for _ in range(512)]
            del full
            for _ in range(20):
                again = [torch.empty(1024, dtype=torch.uint8) for _ in range(500)]
                again.clear()
            before = mallinfo().used
            others = [torch.empty(1024, dtype=torch.uint8) for _ in range(500)]
            assert mallinfo().used - before < mib / 4, mallinfo().used - before
            torchtroupe.uninstall()
            del some, others
            assert kept(1000, small) < mib / 2
            """)

    def test_the_environment_says_whether_memory_is_reused(self):
        program = """
            import ctypes, torch
            Mallinfo = type("Mallinfo", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in "abcdefghij"]})
            mallinfo = ctypes.CDLL(None).mallinfo2
            mallinfo.restype = Mallinfo
            tensors = [torch.empty(1 << 12) for _ in range(500)]
            before = mallinfo().h  # bytes in use
            tensors.clear()
            print((before - mallinfo().h) >> 20)
            """
        installed = {"PYTHONPATH": str(INSTALLED), "TORCHTROUPE": "1"}
        freed = [int(self.passes(program, TORCHTROUPE_REUSE_MEMORY=how, **installed).stdout) for how in ("0", "1")]
        self.assertGreater(freed[0], 6)
        self.assertLess(freed[1], 2)

    def test_an_allocator_of_the_program_stays(self):  # MB-3
        self.passes("""
            import ctypes, torch, torchtroupe
            c10 = ctypes.CDLL("libc10.so")
            mobile, now = c10._ZN3c1028GetDefaultMobileCPUAllocatorEv, c10._ZN3c1015GetCPUAllocatorEv
            mobile.restype = now.restype = ctypes.c_void_p
            libtorchs = now()
            torchtroupe.install()
            assert now() != libtorchs
            torchtroupe.uninstall()
            assert now() == libtorchs
            c10._ZN3c1015SetCPUAllocatorEPNS_9AllocatorEh(ctypes.c_void_p(mobile()), ctypes.c_uint8(0))
            torchtroupe.install()
            assert now() == mobile()
            torchtroupe.uninstall()
            assert now() == mobile()
            set_allocator = lambda which: c10._ZN3c1015SetCPUAllocatorEPNS_9AllocatorEh(ctypes.c_void_p(which), ctypes.c_uint8(0))
            set_allocator(libtorchs)
            torchtroupe.install()
            set_allocator(mobile())
            torchtroupe.uninstall()
            assert now() == mobile()
            """)

    def test_the_profiler_counts_the_memory_of_small_tensors(self):  # MB-4
        self.passes("""
            import torch, torchtroupe
            def counted():
                with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as found:
                    kept = [torch.empty(1000) for _ in range(10)]
                return sum(each.self_cpu_memory_usage for each in found.key_averages() if each.key == "aten::empty")
            expected = counted()
            assert expected >= 40000
            torchtroupe.install()
            for _ in range(2):
                assert counted() == expected, (counted(), expected)
            """)

    def test_a_forked_child_goes_on_with_the_engine(self):
        self.passes("""
            import os, torch, torchtroupe
            torchtroupe.install()
            def backward():
                x = torch.ones(3, requires_grad=True)
                (x * 2).sum().backward()
                return x.grad.tolist() == [2, 2, 2]
            child = os.fork()
            if child == 0:
                os._exit(0 if backward() and torchtroupe.report().passes == 1 else 1)
            assert os.waitpid(child, 0)[1] == 0 and backward()
            """)

    def test_another_torch_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            named = folder + "/libtorchtroupe-2.4.so"
            path = folder + os.pathsep + os.environ.get("PYTHONPATH", "")
            for found in ("2.11.0+cu121", "2.40.1", "2.4.0a0+gitabcdef0", "2.4.0.dev20260101+cu121", "2.4.0rc1", "2.4.1+mine"):
                (pathlib.Path(folder) / "torch.py").write_text(f"__version__ = '{found}'")
                done = run("import torchtroupe", PYTHONPATH=path, TORCHTROUPE_LIBRARY=named)
                self.assertIn("ImportError: torchtroupe needs a release of torch 2.4.* for CPUs or CUDA, and found torch " + found + " in ",
                              done.stderr)

    def test_a_missing_torch_is_named(self):
        done = run("import sys; sys.modules['torch'] = None; import torchtroupe")
        self.assertRegex(done.stderr, r"ImportError: torchtroupe needs a release of torch 2\.\d+\.\* for CPUs or CUDA, which can't be imported here")

    def test_a_torch_without_rpc_has_the_engine_and_an_error_for_rpc(self):
        self.passes("""
            import sys, torch
            del torch._C._rpc_init
            for each in [name for name in sys.modules if name.startswith(("torch.distributed.rpc", "torch._C._distributed_rpc"))]:
                del sys.modules[each]
            sys.modules["torch._C._distributed_rpc"] = None
            import torchtroupe
            torchtroupe.install()
            (torch.ones(3, requires_grad=True) * 2).sum().backward()
            assert torchtroupe.report().passes == 1
            for use in (lambda: torchtroupe.RpcOptions, lambda: __import__("torchtroupe.rpc")):
                try:
                    use()
                    raise AssertionError("expected an error")
                except ImportError as error:
                    assert "was built without RPC" in str(error) and "need a torch with RPC" in str(error), error
            """)

    def test_a_library_that_lacks_the_functions_of_rpc_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(f"""
                import os, torch
                del torch._C._rpc_init
                named = {folder!r} + "/libtorchtroupe-" + ".".join(torch.__version__.split(".")[:2]) + ".so"
                open(named, "w").close()
                os.environ["TORCHTROUPE_LIBRARY"] = named
                import torchtroupe
                """)
        self.assertRegex(done.stderr, r"ImportError: torchtroupe needs .* was built without RPC \(USE_RPC=1\), of which .* uses functions: ")

    def test_a_second_libtorch_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            other = shutil.copy(next(pathlib.Path("/lib/x86_64-linux-gnu").glob("libutil.so*")), folder + "/libtorch_cpu.so")
            done = run(f"import ctypes; ctypes.CDLL({other!r}); import torchtroupe")
        self.assertRegex(done.stderr, r"ImportError: torchtroupe: expected one libtorch in this process, and found 2: ")

    def test_a_missing_library_is_named(self):
        done = run("import torchtroupe", TORCHTROUPE_LIBRARY="/nowhere/libtorchtroupe-9.9.so")
        self.assertIn("torchtroupe needs a release of torch 9.9.*", done.stderr)

    def test_a_program_that_can_not_be_edited_has_the_engine_by_an_environment_variable(self):
        installed = {"PYTHONPATH": str(INSTALLED), "TROUPE_REPORT": "1"}
        program = """
            import sys
            assert "torch" not in sys.modules and "torchtroupe" not in sys.modules
            import torch
            x = torch.ones(3, requires_grad=True)
            (x * 2).sum().backward()
            assert type(torch.__spec__.loader) is type(sys.modules["torch.nn"].__spec__.loader)
            assert not any(type(each).__module__ == "torchtroupe_start" for each in sys.meta_path)
            """
        self.assertIn("troupe: 1 backward passes", self.passes(program, TORCHTROUPE="1", **installed).stderr)
        self.assertNotIn("troupe", self.passes(program, **installed).stderr)
        for off in ("", "0"):
            self.assertNotIn("troupe", self.passes(program, TORCHTROUPE=off, **installed).stderr)
        probe = "import importlib.util\nimportlib.util.find_spec('torch').loader.get_filename('torch')\n"
        self.assertIn("troupe: 1 backward passes", self.passes(probe + textwrap.dedent(program), TORCHTROUPE="yes", **installed).stderr)

    def test_a_torch_that_a_file_has_imported_before_has_the_engine_too(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "sitecustomize.py").write_text(f"import site, torch\nsite.addsitedir({str(PACKAGE)!r})")
            done = self.passes(ONE_PASS, TORCHTROUPE="1", TROUPE_REPORT="1", PYTHONPATH=folder)
        self.assertIn("troupe: 1 backward passes", done.stderr)

    def test_a_program_runs_where_the_engine_can_not(self):
        installed = {"PYTHONPATH": str(INSTALLED), "TORCHTROUPE": "1"}
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "torch.py").write_text("__version__ = '2.4.1'")
            said = self.passes("import torch; print(torch.__version__)", **installed | {"PYTHONPATH": f"{INSTALLED}{os.pathsep}{folder}"})
            self.assertEqual(said.stdout, "2.4.1\n")
            self.assertRegex(said.stderr, r"found torch 2\.4\.1 .*; passes stay on PyTorch's engine")
            minor = self.passes("import torch; print(*torch.__version__.split('.')[:2], sep='.')").stdout.strip()
            damaged = pathlib.Path(folder) / f"libtorchtroupe-{minor}.so"
            damaged.write_text("damaged")
            said = self.passes(ONE_PASS, TORCHTROUPE_LIBRARY=str(damaged), **installed)
            self.assertRegex(said.stderr, rf"^torchtroupe: can't load {damaged} into torch {minor}\.\S+ of /\S+: .*; passes stay on")

    def test_a_file_of_pytorchs_tests_that_can_not_be_imported_fails_the_comparison(self):
        suite = pathlib.Path(__file__).with_name("autograd_suite.py")
        with tempfile.TemporaryDirectory() as folder:
            test = "import unittest\nclass Case(unittest.TestCase):\n    def test_nothing(self): pass\n"
            for name, text, status in (("one", test, 0), ("two", "import torch.nowhere\n", 1)):
                (pathlib.Path(folder) / f"test_{name}.py").write_text(text)
                done = subprocess.run([sys.executable, suite, folder, folder + "/results", "test_*.py"], text=True, capture_output=True,
                                      timeout=300)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                self.assertIn("of the 1 tests that pass on PyTorch's engine, 1 pass on troupe's", done.stdout)
            self.assertIn("these can't: test_two.py", done.stdout)

    @unittest.skipUnless(PRELOAD, "TROUPE_PRELOAD names no library")
    def test_a_preloaded_engine_keeps_the_passes(self):  # PE-2
        done = self.passes("""
            import torch, torchtroupe
            x = torch.ones(3, requires_grad=True)
            for _ in range(2):
                try:
                    torchtroupe.install()
                    raise AssertionError("expected an error")
                except RuntimeError as error:
                    assert "libtroupe_preload.so has taken them" in str(error), error
                (x * 2).sum().backward()
            """, LD_PRELOAD=PRELOAD, TROUPE_REPORT="1")
        self.assertIn("troupe: 2 backward passes", done.stderr)

    @unittest.skipUnless(PRELOAD, "TROUPE_PRELOAD names no library")
    def test_an_engine_of_a_cpp_library_keeps_the_passes_until_the_library_gives_them_back(self):  # PE-2
        self.passes(f"""
            import ctypes, torch, torchtroupe
            library = ctypes.CDLL({str(pathlib.Path(PRELOAD or "").with_name("libtroupe.so"))!r})
            x = torch.ones(3, requires_grad=True)
            for _ in range(2):
                library.troupe_install_engine()
                try:
                    torchtroupe.install()
                    raise AssertionError("expected an error")
                except RuntimeError as error:
                    assert "libtroupe.so has taken them; call its troupe_uninstall_engine() before" in str(error), error
                library.troupe_uninstall_engine()
            torchtroupe.install()
            (x * 2).sum().backward()
            assert torchtroupe.report().passes == 1
            """)


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("SKIPPED: this Python has no torch")
    else:
        unittest.main(verbosity=2)
