// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/stage_wait.hpp"

#include <array>
#include <ctime>
#include <stdexcept>

#include <troupe/actors/support/texts.hpp>

#include "apps/charlm/figures.hpp"

namespace troupe::apps::charlm {

namespace {

constexpr std::chrono::milliseconds between_looks{100};
constexpr std::chrono::seconds between_lines{30};

std::string text_of(std::chrono::steady_clock::duration time) {
  return clock_text(std::chrono::duration<double>(time).count());
}

}  // namespace

std::string stage_wait::time_of_day() {
  const auto now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return text.data();
}

void stage_wait::tell_once(const std::string& key, const std::string& line) {
  const auto now = clock::now();
  if (key == told_ && now - told_at_ < between_lines) return;
  told_ = key;
  told_at_ = now;
  actions_.tell(line);
}

void stage_wait::tell(const std::vector<std::string>& away) {
  tell_once(support::joined(away), "waiting for " + support::joined(away) + ", away since " + since_ + "; for " +
                                     text_of(left()) + " at most (--retry-wait)");
}

void stage_wait::tell_failure(const std::string& why) {
  std::string key;  // `why` without numbers that stand alone, such as times
  char last_other = ' ';
  for (const char c : why) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit || (last_other != ' ' && last_other != '.')) key += c;
    if (!is_digit) last_other = c;
  }
  tell_once(key, "trying again: " + why + "; for " + text_of(left()) + " at most (--retry-wait)");
}

std::string stage_wait::over_text(const std::string& why) const {
  return "expected all stages to be ready within " + text_of(patience_) + " (--retry-wait), but " + why;
}

bool stage_wait::until_all_are_up(const stop_signal& stop) {
  while (!stop.requested()) {
    const auto away = actions_.away();
    if (away.empty()) return true;
    if (is_over())
      throw std::runtime_error("expected all stages to be up again within " + text_of(patience_) + " (--retry-wait), but " +
                               support::joined(away) + " did not come back");
    tell(away);
    actions_.bring_back(end());
    stop.wait_for(between_looks);
  }
  return false;
}

}  // namespace troupe::apps::charlm
