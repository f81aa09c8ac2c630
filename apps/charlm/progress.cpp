// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "apps/charlm/figures.hpp"

namespace troupe::apps::charlm {

namespace {

constexpr std::chrono::milliseconds redraw{100};

std::string bar(double fraction, std::size_t cells) {
  const auto filled = static_cast<std::size_t>(std::lround(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(cells)));
  return "[" + std::string(filled, '#') + std::string(cells - filled, '.') + "]";
}

}  // namespace

progress::progress(std::ostream& out, bool terminal, std::size_t columns, std::chrono::milliseconds every)
    : out_(out), terminal_(terminal), columns_(std::max<std::size_t>(columns, 20)), every_(every) {}

progress progress::on_stdout() {
  winsize size{};
  const auto known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return {std::cout, isatty(STDOUT_FILENO) == 1, known ? size.ws_col : std::size_t{80}};
}

std::string progress::line_of(const progress_report& now, std::size_t columns, bool terminal) {
  auto text = "step " + std::to_string(now.step) + "  loss " + fixed(now.loss, 3);
  if (now.validation_loss) text += "  validation " + fixed(*now.validation_loss, 3);
  text += "  " + grouped(now.tokens_per_second) + " tokens/s  " + clock_text(now.seconds_left) + " left";
  if (!terminal) return text;
  const auto percent = std::to_string(static_cast<int>(std::clamp(now.fraction, 0.0, 1.0) * 100)) + "% ";
  const auto taken = text.size() + percent.size() + 4;
  if (columns > taken + 8) text = percent + bar(now.fraction, std::min<std::size_t>(columns - taken, 40)) + " " + text;
  return text.substr(0, columns - 1);
}

void progress::report(const progress_report& now) {
  const auto time = std::chrono::steady_clock::now();
  if (last_ != std::chrono::steady_clock::time_point{} && time - last_ < (terminal_ ? redraw : every_)) return;
  last_ = time;
  const auto line = line_of(now, columns_, terminal_);
  if (terminal_) {
    shown_ = line;
    out_ << '\r' << line << "\x1b[K" << std::flush;
  } else {
    out_ << line << '\n' << std::flush;
  }
}

void progress::message(const std::string& line) {
  if (shown_.empty())
    out_ << line << '\n' << std::flush;
  else
    out_ << '\r' << line << "\x1b[K\n" << shown_ << std::flush;
}

void progress::finish() {
  if (!shown_.empty()) out_ << '\n' << std::flush;
  shown_.clear();
}

}  // namespace troupe::apps::charlm
