// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <troupe/devices/memory_sharing.hpp>

#include "support/simulated_accelerator.hpp"

namespace troupe::test::simulated {

/// How processes share memory and events of the simulated accelerator. The promises are those of devices::memory_sharing; all
/// handles say whose they are. Memory of less than 4 KiB is not shared.
devices::memory_sharing& sharing();

/// install(devices), and says to devices::sharing_of() how the accelerator shares.
void install_shared(c10::DeviceIndex devices = 2);

/// While an object of this class lives, this process opens no memory of the devices from index `begin` on.
class out_of_reach {
 public:
  explicit out_of_reach(c10::DeviceIndex begin = 0);
  ~out_of_reach();
  out_of_reach(const out_of_reach&) = delete;
  out_of_reach& operator=(const out_of_reach&) = delete;
};

/// While an object of this class lives, each opening of memory of another process first calls `before_open`, and each record of
/// a shared event `before_record`. What they throw is thrown. At most one such object lives at a time.
class watched_sharing {
 public:
  explicit watched_sharing(
    std::function<void()> before_open, std::function<void()> before_record = [] {});
  ~watched_sharing();
  watched_sharing(const watched_sharing&) = delete;
  watched_sharing& operator=(const watched_sharing&) = delete;

  const std::function<void()> before_open;
  const std::function<void()> before_record;
};

/// How often this process has opened memory of another process, since it began, and how many such openings live.
std::size_t openings();
std::size_t opened();

}  // namespace troupe::test::simulated
