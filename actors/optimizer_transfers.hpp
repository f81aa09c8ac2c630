// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/optimizer_checkpoints_test.cpp
#pragma once

#include <string>

namespace troupe::objects {

struct checkpoint_manifest;

}  // namespace troupe::objects

namespace troupe {

class optimizer_parts;

/// The parts of a checkpoint on their way between the files of this node and the other nodes. Parts travel in pieces of 4 MiB:
/// this node holds at most one piece of each part in memory. Another node holds its part once more, while the part travels.

/// Writes the part of each other node, of which the node has made a snapshot, to `folder`. The manifest has their digests.
void receive_parts(const optimizer_parts& parts, const std::string& folder, const objects::checkpoint_manifest& manifest);

/// Sends each part that lies in `folder` to its node. Throws troupe::error if a file is not the one that the manifest names.
void send_parts(const optimizer_parts& parts, const std::string& folder, const objects::checkpoint_manifest& manifest);

}  // namespace troupe
