// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/company.hpp>
#include <troupe/actors/node.hpp>

namespace troupe {

/// The way from a node to the actors behind it: for the classes of the public API and for tests.
struct node_access {
  static company& company_of(node& which) noexcept { return *which.company_; }
};

inline company& company_of(node& which) noexcept { return node_access::company_of(which); }
inline node_parts& parts_of(node& which) noexcept { return company_of(which).parts(); }
inline node_services& services_of(node& which) noexcept { return company_of(which).services(); }

}  // namespace troupe
