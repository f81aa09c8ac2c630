// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/actors/node.hpp>
#include <troupe/actors/nodes/company.hpp>

namespace troupe {

/// Gives the classes of the public API, and tests, access to the actors behind a node.
struct node_access {
  static nodes::company& company_of(node& which) noexcept { return *which.company_; }
};

inline nodes::company& company_of(node& which) noexcept { return node_access::company_of(which); }
inline nodes::node_parts& parts_of(node& which) noexcept { return company_of(which).parts(); }
inline services::node_services& services_of(node& which) noexcept { return company_of(which).services(); }

}  // namespace troupe
