# SPDX-License-Identifier: BSD-3-Clause
"""Installs troupe's engine as soon as torch is imported: for programs that can't be edited. torchtroupe.pth imports this file
where TORCHTROUPE=1 is set."""
import importlib.abc
import importlib.util
import sys


class _LoaderOfTorch(importlib.abc.Loader):
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        try:
            import torchtroupe
            torchtroupe.install()
        except (ImportError, RuntimeError) as error:  # the program runs all the same
            print(f"{error}; passes stay on PyTorch's engine", file=sys.stderr)


class _FinderOfTorch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _LoaderOfTorch(spec.loader)
        return spec


sys.meta_path.insert(0, _FinderOfTorch())
