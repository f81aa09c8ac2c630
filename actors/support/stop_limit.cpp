// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/stop_limit.hpp>

#include <pthread.h>

#include <charconv>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <troupe/messages/errors.hpp>

namespace troupe::support {

namespace {

constexpr const char* variable = "TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT";
constexpr double most_seconds = 86'400;

}  // namespace

std::chrono::milliseconds stop_limit_of_environment() {
  const char* const given = std::getenv(variable);
  if (given == nullptr) return std::chrono::seconds(10);
  const std::string_view text(given);
  double seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (problem != std::errc{} || end != text.data() + text.size() || !(seconds >= 0 && seconds <= most_seconds))
    throw error(errc::misuse, std::string("the environment variable ") + variable +
                                ": expected a number of seconds from 0 to 86400, got '" + given + "'");
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

bool ends_by(std::chrono::steady_clock::time_point until, std::function<void()> work) {
  struct shared {
    void run() {
      std::exchange(work, nullptr)();  // destroyed before `ended` says that it is over
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
