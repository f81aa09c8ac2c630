// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The whole public API of troupe.
#include <troupe/actors/context.hpp>
#include <troupe/actors/joined_message.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/optimizer.hpp>
#include <troupe/actors/process_limits.hpp>
#include <troupe/actors/remote_module.hpp>
#include <troupe/actors/script_module.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/state_file.hpp>
#include <troupe/actors/version.hpp>
#include <troupe/actors/worker_team.hpp>
#include <troupe/engine/backward.hpp>
#include <troupe/engine/gradient_table.hpp>
