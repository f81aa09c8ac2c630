// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/devices/own_offers_test.cpp
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include <troupe/devices/memory_sharing.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::devices {

/// Tensors of devices that nodes of this process offer each other. CUDA opens no handle in the process that made it.
///   OO-1  a tensor and its event can be found as long as its `kept` lives.
/// Any thread may use the object.
class own_offers {
 public:
  struct offered {
    at::Tensor elements;
    std::shared_ptr<shared_event> made;
  };
  using kept = std::shared_ptr<const std::string>;  // the handle

  /// The only object of the process.
  static own_offers& all();

  kept add(offered what);
  std::optional<offered> find(const std::string& handle);

 private:
  checked_mutex mutex_;
  std::map<std::string, offered> offered_ TROUPE_GUARDED_BY(mutex_);
  std::uint64_t last_ TROUPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::devices
