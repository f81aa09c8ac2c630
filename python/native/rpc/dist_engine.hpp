// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/python/rpc/autograd_test.py
#pragma once

namespace torchtroupe {

/// From now on, the distributed passes of agents of this library are troupe's: the slots of libtorch in which DistEngine's
/// functions are called lead here. Passes of other agents (TensorPipe) still go to PyTorch. Throws std::runtime_error if
/// libtorch has no such slots.
void take_distributed_passes();

}  // namespace torchtroupe
