// SPDX-License-Identifier: BSD-3-Clause
#include "torch.hpp"

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/openssl/all.hpp>
