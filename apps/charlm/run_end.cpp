// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/run_end.hpp"

#include <poll.h>
#include <unistd.h>

#include "apps/charlm/advice.hpp"

namespace troupe::apps::charlm {

namespace {

constexpr std::chrono::milliseconds time_to_leave{150};  // time for the stages to leave if time_to_save was not enough

/// Writes a line directly to stdout, because another thread may be printing at the same time. Writes nothing if stdout is not
/// ready, so that the process does not wait.
void print_at_once(const std::string& line) {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0) [[maybe_unused]]
    const auto written = ::write(STDOUT_FILENO, line.data(), line.size());
}

}  // namespace

run_end::run_end(const train_options& options, const stop_signal& stop, const run_folder& folder)
    : options_(options), folder_(folder) {
  last_exit_.emplace(stop, std::chrono::milliseconds(0), [this] { leave(); });
}

void run_end::tell_stop(progress& to, std::int64_t step) {
  if (!told_.exchange(true)) to.message("stopped by a signal at step " + std::to_string(step) + saved_text());
}

std::string run_end::saved_text() const {
  const auto step = saved_step_.load();
  if (step < 0) return "";
  return "; the checkpoint of step " + std::to_string(step) + " in " + folder_.checkpoint() + " is whole, " +
         (trained_ ? "text from it: " + generate_command(options_) : "continue with: " + continue_command(options_));
}

/// Runs on the thread of last_exit_, while the run may still work. The process ends after this function.
void run_end::leave() noexcept {
  auto* nodes = nodes_.load();
  if (!told_.exchange(true)) {
    const auto* doing =
      nodes == nullptr ? "stopped by a signal" : "stopped by a signal in the middle of work that takes longer";
    print_at_once((isatty(STDOUT_FILENO) == 1 ? "\n" : "") + std::string(doing) + saved_text() + "\n");
  }
  if (nodes != nullptr) nodes->stop(time_to_leave);
  folder_.abandon();
}

}  // namespace troupe::apps::charlm
