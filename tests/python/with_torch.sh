#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# with_torch.sh PROGRAM: runs a program of this folder with the Python whose PyTorch `make test-python` has installed, that of
# TORCHTROUPE_LIBRARY.
folder=$(cd "$(dirname "$0")" && pwd)
minor=${TORCHTROUPE_LIBRARY##*-}
for torch in "$folder"/../../build/python*/torch-"${minor%.so}".*; do
  [ ! -e "$torch" ] || exec "${torch%/*}/bin/python" "$folder/$1"
done
echo "SKIPPED: make test-python installs PyTorch for this test"
