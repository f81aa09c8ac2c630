# SPDX-License-Identifier: BSD-3-Clause
"""Which torch the package is built for: tells scikit-build-core the version, and CMake the folder (`python3 torch_minor.py`).

That torch is the one in TROUPE_TORCH_DIR, otherwise that of the Python for which pip installs, otherwise that of .venv."""
import importlib.util
import os
import pathlib
import re
import site
import sys
import sysconfig

root = pathlib.Path(__file__).resolve().parents[1]


def of_this_python():
    found = importlib.util.find_spec("torch")
    folders = [pathlib.Path(found.origin).parents[1]] if found is not None and found.origin else []
    folders.append(sysconfig.get_path("platlib"))
    # pip hides the packages of the system while it builds.
    environment = pathlib.Path(sys.prefix) / "pyvenv.cfg"
    if environment.exists() and re.search(r"(?mi)^include-system-site-packages\s*=\s*true", environment.read_text()):
        folders += site.getsitepackages([sys.base_prefix])
    return [pathlib.Path(each) / "torch" for each in folders]


def folder():
    named = os.environ.get("TROUPE_TORCH_DIR")
    places = [pathlib.Path(named)] if named else [*of_this_python(), *sorted(root.glob(".venv/lib/python3*/site-packages/torch"))]
    for place in places:
        if (place / "version.py").exists():
            return place
    raise SystemExit("torchtroupe: expected torch in one of " + ", ".join(map(str, places)) + ", and found none. Install torch first, or "
                     "set TROUPE_TORCH_DIR to the folder of the package torch")


def dynamic_metadata(field, settings=None):
    chosen = folder()
    print(f"torchtroupe: built for the torch in {chosen}", file=sys.stderr)
    minor = re.search(r"__version__ = '(\d+\.\d+)", (chosen / "version.py").read_text())[1]
    if field == "dependencies":
        return [f"torch=={minor}.*"]
    version = re.search(r"project\(troupe VERSION (\S+)", (root / "CMakeLists.txt").read_text())[1]
    return f"{version}+torch{minor}"


if __name__ == "__main__":
    print(folder())
