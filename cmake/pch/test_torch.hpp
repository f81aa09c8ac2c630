// SPDX-License-Identifier: BSD-3-Clause
#include "torch.hpp"

#include <torch/torch.h>

#include <boost/test/unit_test.hpp>
