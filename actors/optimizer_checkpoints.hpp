// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include <troupe/messages/attributes.hpp>

namespace troupe::objects {

struct checkpoint_manifest;

}  // namespace troupe::objects

namespace troupe {

class optimizer_parts;

/// Saves and loads the checkpoint of an optimizer: see optimizer::save(), expect_room() and load(). No other thread may use the
/// parts meanwhile.
///   OK-1  a save that fails leaves no part and no snapshot on any node that can be reached.
///   OK-2  after a save, the parts of earlier saves are gone from `folder` and from the folders on the nodes.
///   OK-3  while an optimizer lives, no other optimizer of this process saves to a folder that the first one has saved to or
///         loaded from.
class optimizer_checkpoints {
 public:
  optimizer_checkpoints(optimizer_parts& parts, const std::string& folder);

  void expect_room(const std::string& node_folder);
  void save(const attributes& about, const std::string& node_folder);
  /// `number`: the number of this change, for local_optimizer::apply(). load() sets `applies` to true before the first node
  /// changes anything.
  attributes load(std::uint64_t number, bool& applies);

 private:
  /// fetch_parts() and write_on_nodes() each write all parts and add them to the manifest.
  void fetch_parts(objects::checkpoint_manifest& manifest);
  void write_on_nodes(objects::checkpoint_manifest& manifest, const std::string& node_folder);
  void take_back(const std::string& save, const std::string& node_folder) noexcept;
  void remove_earlier(const objects::checkpoint_manifest& now, const objects::checkpoint_manifest& before) noexcept;
  void discard() noexcept;
  void expect_own(const std::string& node_folder, bool takes) const;

  optimizer_parts& parts_;
  std::string folder_;  // absolute
};

}  // namespace troupe
