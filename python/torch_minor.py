# SPDX-License-Identifier: BSD-3-Clause
"""Which torch the package is built for: tells scikit-build-core the version, and CMake the folder (`python3 torch_minor.py`).

That torch is the one in TROUPE_TORCH_DIR, otherwise that of the Python for which pip installs, otherwise that of .venv."""
import os
import pathlib
import re
import sysconfig

root = pathlib.Path(__file__).resolve().parents[1]


def folder():
    named = os.environ.get("TROUPE_TORCH_DIR")
    places = [pathlib.Path(named)] if named else [pathlib.Path(sysconfig.get_path("platlib")) / "torch",
                                                  *sorted(root.glob(".venv/lib/python3*/site-packages/torch"))]
    for place in places:
        if (place / "version.py").exists():
            return place
    raise SystemExit("torchtroupe: expected torch in one of " + ", ".join(map(str, places)) + ", and found none. Install torch first, or "
                     "set TROUPE_TORCH_DIR to the folder of the package torch")


def dynamic_metadata(field, settings=None):
    minor = re.search(r"__version__ = '(\d+\.\d+)", (folder() / "version.py").read_text())[1]
    if field == "dependencies":
        return [f"torch=={minor}.*"]
    version = re.search(r"project\(troupe VERSION (\S+)", (root / "CMakeLists.txt").read_text())[1]
    return f"{version}+torch{minor}"


if __name__ == "__main__":
    print(folder())
