// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <torch/headeronly/version.h>

/// What differs between the versions of libtorch that troupe is built with (cmake/libtorch.txt). No other file asks for a
/// version. libtroupe_preload.so is built without libtorch, so this header has macros alone; torch_compat.hpp has the names.

/// A graph holds a function by c10::intrusive_ptr. Before, std::shared_ptr held it.
#define TROUPE_TORCH_HAS_INTRUSIVE_NODES (TORCH_VERSION_MINOR >= 13)

/// Checks for streams that are not in a graph capture (Context::overrideStaleCaptureStream).
#define TROUPE_TORCH_HAS_CAPTURE_CHECKS (TORCH_VERSION_MINOR >= 13)

/// Engine::get_node_creation_hooks, and a thread-local list of these hooks.
#define TROUPE_TORCH_HAS_CREATION_HOOKS (TORCH_VERSION_MINOR >= 14)

/// get_current_input_grad_buffers, from which Python answers ctx.input_grad_buffers.
#define TROUPE_TORCH_HAS_GRADIENT_BUFFERS (TORCH_VERSION_MINOR >= 15)
