// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/schedule.hpp"

namespace troupe::apps::charlm {

double bubble_by_formula(schedule how, std::int64_t stages, std::int64_t micro_batches, const work_times& measured) {
  const auto work = measured.work();
  const auto waits = how == schedule::zero_bubble && work > 0 ? 1 - 2 * measured.weights / work : 1;  // for each other stage
  const auto idle = static_cast<double>(stages - 1) * waits;
  return idle / (static_cast<double>(micro_batches) + idle);
}

}  // namespace troupe::apps::charlm
