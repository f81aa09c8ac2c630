#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A stand-in for a Python that has PyTorch STAND_IN_TORCH: it says so, and it says how fast it trains.
case $1 in
  -c) echo "$STAND_IN_TORCH" ;;
  *torch_pipelining.py) echo 'a warning of libtorch'; echo '{"tokens_per_second": 12345.5, "first_loss": 4.5, "last_loss": 4.4}' ;;
  *) echo "expected -c or torch_pipelining.py, got '$1'" >&2; exit 2 ;;
esac
