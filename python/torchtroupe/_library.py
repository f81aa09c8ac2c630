# SPDX-License-Identifier: BSD-3-Clause
"""Finds the shared library that fits the imported torch, and loads it."""
import ctypes
import os
import pathlib
import re

package = pathlib.Path(__file__).resolve().parent


def candidates():
    """The libraries beside this file, or those of the build folder where the package lies in troupe's source tree."""
    named = os.environ.get("TORCHTROUPE_LIBRARY")
    if named:
        return [pathlib.Path(named)]
    here = sorted(package.glob("libtorchtroupe-*.so"))
    return here or sorted((package.parents[1] / "build/release/python").glob("libtorchtroupe-*.so"))


def copies_of_libtorch():
    """The files of libtorch that this process has loaded."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return sorted({match[0] for match in re.finditer(r"/\S.*/libtorch_cpu\b[^/\n]*", maps.read())})


def load():
    found = candidates()
    versions = {re.sub(r".*libtorchtroupe-(.*)\.so$", r"\1", str(each)): each for each in found}
    if not found:
        raise ImportError(f"torchtroupe: expected libtorchtroupe-*.so in {package}; there is none. Install the wheel, or build "
                          "the target torchtroupe_native")
    needs = "a release of torch " + " or ".join(f"{each}.*" for each in versions) + " for CPUs or CUDA"
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"torchtroupe needs {needs}, which can't be imported here: {error}") from error
    place = pathlib.Path(torch.__file__).parent
    # The library knows the classes of libtorch's releases. Another build may have other classes.
    release = re.fullmatch(r"(\d+\.\d+)\.\d+(\+cpu|\+cu\d+)?", torch.__version__)
    if release is None or release[1] not in versions:
        raise ImportError(f"torchtroupe needs {needs}, and found torch {torch.__version__} in {place}. Install that torch, or "
                          "the torchtroupe for the other one")
    refuse_second_libtorch()
    file = versions[release[1]]
    try:
        library = ctypes.CDLL(str(file))
    except OSError as error:
        if not has_rpc():
            raise ImportError(f"torchtroupe needs {needs}, and the torch {torch.__version__} in {place} was built without RPC "
                              f"(USE_RPC=1), of which {file} uses functions: {error}") from error
        raise ImportError(f"torchtroupe: can't load {file} into torch {torch.__version__} of {place}: {error}. Install "
                          "torchtroupe again, or build the target torchtroupe_native with that torch") from error
    refuse_second_libtorch()
    return library


def has_rpc():
    """As torch.distributed.rpc.is_available()."""
    import torch
    return hasattr(torch._C, "_rpc_init")


def refuse_second_libtorch():
    copies = copies_of_libtorch()
    if len(copies) != 1:
        raise ImportError(f"torchtroupe: expected one libtorch in this process, and found {len(copies)}: {', '.join(copies)}. "
                          "Remove what loads the others (LD_PRELOAD, LD_LIBRARY_PATH, an extension built with another torch)")


native = load()
native.torchtroupe_version.restype = ctypes.c_char_p
version = native.torchtroupe_version().decode()
