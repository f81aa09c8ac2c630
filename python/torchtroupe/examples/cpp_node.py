# SPDX-License-Identifier: BSD-3-Clause
"""Starts a C++ node and a Python worker for the examples, on this machine."""
import argparse
import contextlib
import os
import re
import shutil
import subprocess
import tempfile

import torch.distributed.rpc as rpc
import torchtroupe
import torchtroupe.rpc


@contextlib.contextmanager
def peer_in_cpp(program, library, name, worker="python"):
    """`troupe node` with a library, as a peer of this process, which becomes the worker `worker`."""
    for file, is_there in ((program, shutil.which(program)), (library, os.path.exists(library))):
        if not is_there:
            raise SystemExit(f"expected {file}, which `make` builds in a clone of troupe: run this example there, or give "
                             "--troupe and --library")
    command = [program, "node", "--name", name, "--load", library, "--until-left", worker, "--log-level", "warn",
               "--heartbeat-ms", "1000"]  # as of the worker, which may lack a CPU for a second
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node, tempfile.TemporaryDirectory() as folder:
        try:
            line = node.stdout.readline()  # "stage1 listens on 127.0.0.1:40123"
            address = re.search(r"\S+:\d+", line)
            if address is None:
                raise RuntimeError(f"expected the address of '{name}', got '{line}' from {' '.join(command)}")
            options = torchtroupe.rpc.RpcOptions(init_method=f"file://{folder}/store")
            rpc.init_rpc(worker, backend=rpc.BackendType.TROUPE, rank=0, world_size=1, rpc_backend_options=options)
            yield torchtroupe.peer(name, address[0])
            rpc.shutdown()
        finally:
            node.terminate()


def add_words(options):
    options.add_argument("--troupe", default="build/release/apps/troupe", help="the program troupe")
    options.add_argument("--library", default="build/release/tests/apps/libexample_python_peers.so",
                         help="made of apps/examples/python_peers/library.cpp")


def words(about):
    options = argparse.ArgumentParser(description=about)
    add_words(options)
    return options.parse_args()
