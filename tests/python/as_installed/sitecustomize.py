# SPDX-License-Identifier: BSD-3-Clause
"""With this folder in PYTHONPATH, Python finds the package torchtroupe of the source tree, and its .pth file, as if installed."""
import pathlib
import site

site.addsitedir(str(pathlib.Path(__file__).parents[3] / "python"))
