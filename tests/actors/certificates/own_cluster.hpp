// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

#include <troupe/actors/certificates/authority.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/temporary_folder.hpp"

namespace troupe::test {

/// An authority in a temporary folder, and kits of its nodes.
class own_cluster {
 public:
  using clock = std::chrono::system_clock;
  using days = certificates::authority::days;

  explicit own_cluster(const std::string& name = "mine", clock::time_point since = clock::now())
      : made_(certificates::authority::create(folder_ / "authority", name, since)) {}

  const certificates::authority& authority() const noexcept { return made_; }
  std::string file(const std::string& name) const { return folder_ / name; }
  std::string revoked() const { return made_.revoked_file().string(); }

  /// The settings of a node on loopback with a kit of the cluster. The network is troupe's, because CAF's has no gate.
  settings settings_of(const std::string& node, const std::string& role = "member") const {
    auto result = loopback_settings(node);
    result.network = network_kind::troupe;
    result.insecure = false;
    result.certificates = kit_of_role(node, role);
    return result;
  }

  /// Makes a kit in a new file, and returns the file.
  std::string kit(const std::string& node, clock::time_point since = clock::now(), days life = days(1),
                  const std::string& role = "member") const {
    auto result = file(node + "-" + std::to_string(++kits_) + ".pem");
    certificates::write_kit(made_.issue(node, role, {}, since, life), result);
    return result;
  }

  std::string kit_of_role(const std::string& node, const std::string& role) const {
    return kit(node, clock::now(), days(1), role);
  }

 private:
  temporary_folder folder_;
  certificates::authority made_;
  mutable int kits_ = 0;
};

}  // namespace troupe::test
