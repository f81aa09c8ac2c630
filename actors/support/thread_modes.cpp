// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/thread_modes.hpp>

#include <ATen/autocast_mode.h>

#include <troupe/messages/tensor_rules.hpp>

namespace troupe::support {

using namespace at::autocast;

compute_modes modes_of_thread(bool with_autocast) {
  compute_modes result{!c10::GradMode::is_enabled(), c10::InferenceMode::is_enabled(), {}};
  if (!with_autocast) return result;
  for (const auto kind : _AUTOCAST_SUPPORTED_DEVICES)
    if (wire_number(c10::Device(kind)) && is_autocast_enabled(kind))
      result.autocast.push_back({kind, get_autocast_dtype(kind)});
  return result;
}

modes_scope::modes_scope(const compute_modes& modes) : grad_(!modes.no_grad) {
  if (modes.inference != c10::InferenceMode::is_enabled()) {
    inference_.emplace(modes.inference);
    c10::GradMode::set_enabled(!modes.no_grad);
  }
  for (const auto& each : modes.autocast) {
    if (!is_autocast_available(each.device)) continue;  // this node has no such device
    before_.push_back({{each.device, get_autocast_dtype(each.device)}, is_autocast_enabled(each.device)});
    set_autocast_dtype(each.device, each.dtype);
    set_autocast_enabled(each.device, true);
  }
  if (!before_.empty()) increment_nesting();
}

modes_scope::~modes_scope() {
  for (auto each = before_.rbegin(); each != before_.rend(); ++each) {
    set_autocast_enabled(each->mode.device, each->is_on);
    set_autocast_dtype(each->mode.device, each->mode.dtype);
  }
  if (!before_.empty() && decrement_nesting() == 0) clear_cache();
}

}  // namespace troupe::support
