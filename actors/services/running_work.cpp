// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/running_work.hpp>

#include <utility>

#include <ATen/Parallel.h>

#include <troupe/actors/support/steady_clock.hpp>

namespace troupe::services {

/// Libraries under libtorch (OpenMP, MKL) store for each thread how many threads they start for it. As in libtorch's engine,
/// the first work of a thread sets this number to the number that the process has set.
own_thread::own_thread(running_work& work, std::string_view kind, std::string_view name) noexcept
    : entry_(work, kind, name, support::steady_ns()), outer_(std::exchange(current_, &work)) {
  thread_local bool known = false;
  if (!std::exchange(known, true)) at::init_num_threads();
}

}  // namespace troupe::services
