#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs the wheel into a fresh virtual environment of each Python from 3.10 to 3.13, and runs programs there.

    wheel_test.py WHEEL FOLDER BUILD

FOLDER keeps torch for each Python (`torch2.15-3.11` and so on), so that torch is installed once; the large libraries of NVIDIA are
shared. The torch in build/python serves its Python.
BUILD has the simulated device and the library to preload. PYTHONS in the environment names fewer Pythons. A Python that the machine
lacks, or that is too old for this torch, is named and skipped. The first Python also runs tests and compare.py. Nothing of a Debian
package may be loaded beside the C and C++ libraries."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

VERSIONS = os.environ.get("PYTHONS", "").split() or ["3.10", "3.11", "3.12", "3.13"]
SYSTEM = r"(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libutil|libgcc_s|libstdc\+\+|libz|libresolv|libnss_\w+)[.-]"

BY_IMPORT = """
import ctypes, torch
def libraries():
    with open("/proc/self/maps") as maps:
        return {line.split()[-1] for line in maps if ".so" in line}
before = libraries()
import torchtroupe
def gradient():
    x = torch.linspace(0.1, 1, 5).requires_grad_()
    (x.exp() * x.sin()).sum().backward()
    return x.grad
expected = gradient()
torchtroupe.install()
assert torch.equal(gradient(), expected) and torchtroupe.report().passes == 1, torchtroupe.report()
torchtroupe.uninstall()
print(*sorted(libraries() - before), sep="\\n")
"""
UNCHANGED = """
import torch
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
"""


def minor_of(wheel):
    """The version of torch that the wheel is for, as 2.15."""
    return re.search(r"[+.]torch(\d+\.\d+)", wheel.name)[1]


def too_old(version, minor):
    """Why torch has no wheel for this Python, as the metadata of the torch that troupe was built with says; else nothing."""
    for metadata in pathlib.Path(__file__).parents[2].glob(f".venv*/lib/python3*/site-packages/torch-{minor}.*.dist-info/METADATA"):
        oldest = int(re.search(r"^Requires-Python: >=3\.(\d+)$", metadata.read_text(encoding="utf-8"), re.MULTILINE)[1])
        if int(version.split(".")[1]) < oldest:
            return f"is too old: torch {minor} begins with 3.{oldest}"
    return None


def interpreter(version, minor):
    """A Python of that version, of pyenv or in PATH, or why there is none to test with."""
    reason = too_old(version, minor)
    if reason is not None:
        return None, reason
    reason = "is not on this machine"
    places = [*sorted(pathlib.Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python")), shutil.which(f"python{version}")]
    for place in filter(None, places):
        answer = subprocess.run([place, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"], text=True,
                                capture_output=True, timeout=60)
        if answer.stdout.strip() == version:
            return place, None
        reason = f"({place}) can't be used: {(answer.stderr.strip().splitlines() or ['it is another version'])[-1]}"
    return None, reason


def pip(python, *arguments):
    subprocess.run([python, "-m", "pip", "-q", "--disable-pip-version-check", *arguments], check=True, timeout=1800)


def site_packages(environment):
    return next((environment / "lib").glob("python3*/site-packages"))


def torch_for(version, python, wheel, folder):
    """The site-packages folder of an environment with torch."""
    minor = minor_of(wheel)
    shared = pathlib.Path(__file__).parents[2] / "build/python"  # of `make test-python`
    if list(shared.glob(f"torch-{minor}.*")) and (shared / f"lib/python{version}").exists():
        return site_packages(shared)
    made, whole = folder / f"torch{minor}-{version}", folder / f"nvidia-{minor}"
    if (made / "made").exists():
        return site_packages(made)
    shutil.rmtree(made, ignore_errors=True)
    subprocess.run([python, "-m", "venv", made], check=True, timeout=120)
    if not whole.exists():  # the first one brings NVIDIA's libraries
        pip(made / "bin/python", "install", "--no-compile", f"torch=={minor}.*", "numpy")
        if (site_packages(made) / "nvidia").exists():  # torch for CPUs has none
            shutil.move(site_packages(made) / "nvidia", whole)
    else:
        pip(made / "bin/python", "install", "--no-compile", "--no-deps", f"torch=={minor}.*")
        pip(made / "bin/python", "install", "--no-compile", "numpy", "typing_extensions", "sympy", "filelock", "networkx", "jinja2", "fsspec")
    if whole.exists():
        (site_packages(made) / "nvidia").symlink_to(whole)
    (made / "made").touch()
    return site_packages(made)


def run(python, *arguments, timeout=300, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LD_", "TORCHTROUPE"))}
    done = subprocess.run([python, *arguments], env=clean | environment, text=True, capture_output=True, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def check(version, python, wheel, folder, build):
    torch = torch_for(version, python, wheel, folder)
    fresh = folder / f"fresh-{version}"
    shutil.rmtree(fresh, ignore_errors=True)
    subprocess.run([python, "-m", "venv", fresh], check=True, timeout=120)
    (site_packages(fresh) / "shared_torch.pth").write_text(f"{torch}\n")
    ours = fresh / "bin/python"
    pip(ours, "install", "--no-index", "--no-deps", wheel)  # torch is there, and its libraries are links
    minor = minor_of(wheel)
    run(ours, "-c", f"import importlib.metadata as m; assert m.requires('torchtroupe') == ['torch=={minor}.*'], m.requires('torchtroupe')")
    loaded = run(ours, "-c", BY_IMPORT).stdout.split()
    outside = [each for each in loaded if "/torchtroupe" not in each and not re.match(SYSTEM, pathlib.Path(each).name)]
    assert not outside, f"not in the wheel: {outside}"
    assert any("torchtroupe.libs" in each for each in loaded), loaded
    said = run(ours, "-c", UNCHANGED, TORCHTROUPE="1", TROUPE_REPORT="1").stderr
    assert "troupe: 1 backward passes" in said, said
    assert "troupe" not in run(ours, "-c", UNCHANGED, TROUPE_REPORT="1").stderr
    run(ours, "-c", "import sys; assert not any('torchtroupe' in each for each in sys.modules)")
    run(ours, "-c", "import sys; assert 'torch' not in sys.modules", TORCHTROUPE="1")
    if build is not None:
        here = pathlib.Path(__file__).parent
        named = {"TROUPE_PRELOAD": str(build / "engine/drop_in/libtroupe_preload.so")}
        for program in ("engine_test.py", "rpc/autograd_test.py"):
            tested = run(ours, str(here / program), timeout=900, **named)
            print(tested.stderr.rstrip().splitlines()[-1], program, flush=True)
        compared = run(ours, str(here / "compare.py"), "--installed", "--device", str(build / "tests/support/simulated_device.so"), timeout=900)
        print(compared.stdout.rstrip().splitlines()[-1], "compare.py", flush=True)
    pip(ours, "uninstall", "-y", "torchtroupe")
    run(ours, "-c", UNCHANGED, TORCHTROUPE="1")
    shutil.rmtree(fresh)


def main():
    wheel, folder, build = (pathlib.Path(each).resolve() for each in sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    done = 0
    for version in VERSIONS:
        python, reason = interpreter(version, minor_of(wheel))
        if python is None:
            print(f"SKIPPED: Python {version} {reason}", flush=True)
            continue
        check(version, python, wheel, folder, build if done == 0 else None)
        done += 1
        print(f"Python {version}: installed and run", flush=True)
    assert done > 0, "no Python of " + ", ".join(VERSIONS)


if __name__ == "__main__":
    main()
