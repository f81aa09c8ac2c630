// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <troupe/actors/certificates/authority.hpp>

#include "../support/scratch_folder.hpp"

namespace troupe::bench {

/// Kits of one cluster, as long as the object lives.
class kits {
 public:
  kits();

  /// The file of a node's kit.
  std::string file(const std::string& node) const;
  /// The options of node_options(), with a kit instead of --insecure.
  std::vector<std::string> options(const std::string& name, int port, const std::vector<std::string>& join = {}) const;

 private:
  scratch_folder folder_;
  certificates::authority authority_;
};

}  // namespace troupe::bench
