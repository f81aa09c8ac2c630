// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/attributes.hpp>

namespace troupe::objects {

struct checkpoint_manifest;

}  // namespace troupe::objects

namespace troupe {

class optimizer_shards;

/// Saves and loads the checkpoint of an optimizer: see optimizer::save(), expect_disk_space() and load(). One save or load of
/// the parts runs at a time.
///   OK-1  a save that fails leaves no part and no snapshot on any node that can be reached.
///   OK-2  after a save, the parts of earlier saves are gone from `folder` and from the folders on the nodes.
///   OK-3  while an optimizer lives, no other optimizer of this process saves to a folder that the first one has saved to or
///         loaded from.
class optimizer_checkpoints {
 public:
  optimizer_checkpoints(optimizer_shards& shards, const std::string& folder);

  void expect_disk_space(const std::string& node_folder);
  /// Makes a snapshot on each node. No step may be made meanwhile. Returns the manifest, for write().
  objects::checkpoint_manifest snapshot(const attributes& about, const std::string& node_folder);
  /// Writes the snapshots and then the manifest. Steps may be made meanwhile.
  void write(const objects::checkpoint_manifest& manifest);
  /// `number`: the number of this change, for local_optimizer::apply(). load() sets `applies` to true before the first node
  /// changes anything.
  attributes load(std::uint64_t number, bool& applies);

 private:
  void write_parts(const objects::checkpoint_manifest& manifest);
  void remove(const objects::checkpoint_manifest& named, bool others) noexcept;
  void discard() noexcept;
  void expect_own(const std::string& node_folder, bool takes) const;

  optimizer_shards& shards_;
  std::string folder_;  // absolute
};

}  // namespace troupe
