// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/ends_by.hpp>

#include <pthread.h>

#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace troupe::support {

bool ends_by(std::chrono::steady_clock::time_point until, std::function<void()> work) {
  struct shared {
    void run() {
      std::exchange(work, nullptr)();  // the work is destroyed before `ended` is set
      ended.set_value();
    }
    std::function<void()> work;
    std::promise<void> ended;
  };
  const auto both = std::make_shared<shared>();
  both->work = std::move(work);
  std::thread worker;
  try {
    worker = std::thread([both] {
      ::pthread_setname_np(::pthread_self(), "troupe.end");
      both->run();
    });
  } catch (const std::system_error&) {
    both->run();
    return true;
  }
  const bool has_ended = both->ended.get_future().wait_until(until) == std::future_status::ready;
  has_ended ? worker.join() : worker.detach();
  return has_ended;
}

}  // namespace troupe::support
