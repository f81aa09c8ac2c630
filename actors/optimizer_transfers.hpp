// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_checkpoints_test.cpp
#pragma once

#include <string>

namespace troupe::objects {

struct checkpoint_manifest;

}  // namespace troupe::objects

namespace troupe {

class optimizer_shards;

/// Functions that move the parts of a checkpoint between files of this node and the other nodes. Parts travel in pieces of 4
/// MiB: this node holds at most one piece of each part in memory. Another node holds a second copy of its part in memory while
/// the part travels.

/// Fetches the snapshot that each other node has made of its part, and writes it to `folder`. The manifest has the digests of
/// the parts.
void receive_parts(const optimizer_shards& shards, const std::string& folder, const objects::checkpoint_manifest& manifest);

/// Sends each part that lies in `folder` to its node. Throws troupe::error if a file is not the one that the manifest names.
void send_parts(const optimizer_shards& shards, const std::string& folder, const objects::checkpoint_manifest& manifest);

}  // namespace troupe
