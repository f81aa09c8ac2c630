# SPDX-License-Identifier: BSD-3-Clause
"""Installs troupe's engine as soon as torch is imported: for programs that can't be edited. torchtroupe.pth imports this file
where TORCHTROUPE=1 is set. TORCHTROUPE_REUSE_MEMORY=0 is install(reuse_memory=False)."""
import importlib.abc
import os
import sys


def _install():
    try:
        import torchtroupe
        torchtroupe.install(reuse_memory=os.environ.get("TORCHTROUPE_REUSE_MEMORY") != "0")
    except Exception as error:  # the program runs all the same
        print(f"{error}; passes stay on PyTorch's engine", file=sys.stderr)


class _LoaderOfTorch(importlib.abc.Loader):
    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
        _install()


class _FinderOfTorch(importlib.abc.MetaPathFinder):
    # A program may look for torch before it imports torch, so this finder stays until the import.
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        found = (each.find_spec(name, path, target) for each in sys.meta_path if each is not self)
        spec = next(filter(None, found), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _LoaderOfTorch(spec.loader)
        return spec


_finder = _FinderOfTorch()
if "torch" in sys.modules:
    _install()
else:
    sys.meta_path.insert(0, _finder)
