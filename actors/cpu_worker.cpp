// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/cpu_worker.hpp>

#include <utility>

namespace troupe {

cpu_worker_actor::behavior_type make_cpu_worker(cpu_worker_actor::pointer) {
  return {
    [](cpu_work_ptr& work) { (*std::exchange(work, nullptr))(); },
  };
}

}  // namespace troupe
