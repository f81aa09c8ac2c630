#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# with_torch.sh PROGRAM: runs a program of this folder with the Python whose PyTorch `make test-python` has installed.
folder=$(cd "$(dirname "$0")" && pwd)
python=$folder/../../build/python/bin/python
[ -x "$python" ] || { echo "SKIPPED: make test-python installs PyTorch for this test"; exit 0; }
exec "$python" "$folder/$1"
