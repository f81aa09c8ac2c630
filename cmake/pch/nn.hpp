// SPDX-License-Identifier: BSD-3-Clause
#include "caf.hpp"

#include <torch/torch.h>
