// SPDX-License-Identifier: BSD-3-Clause
#include "soak.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace troupe::simulation {

namespace {

std::string named(std::size_t node) { return "n" + std::to_string(node); }

}  // namespace

soak_faults::soak_faults(test::simulated_cluster& all, std::mt19937_64& random)
    : all_(all),
      network_(all.network()),
      random_(random),
      count_(all.size()),
      stamps_(count_ * count_, all.now_ns()),
      slow_(count_ * count_),
      thawed_(count_) {}

/// Most faults are over before other nodes forget a node, some are not.
std::int64_t soak_faults::draw_length_ns() {
  const auto interval = static_cast<std::size_t>(all_.interval_ns());
  constexpr std::array<std::size_t, 4> longest{2, 8, 20, 60};  // in intervals
  return static_cast<std::int64_t>(1 + below(interval * longest.at(below(4))));
}

void soak_faults::note(std::size_t a, std::size_t b) { stamp(a, b) = stamp(b, a) = network_.clock().now_ns(); }

void soak_faults::note(std::size_t node) {
  for (std::size_t other = 0; other < count_; ++other) note(node, other);
}

void soak_faults::note_separation() {
  for (std::size_t a = 0; a < network_.parted(); ++a)
    for (std::size_t b = network_.parted(); b < count_; ++b) note(a, b);
}

void soak_faults::end_later(const std::function<void()>& end) {
  network_.clock().in(draw_length_ns(), [this, end, healed = healed_] {
    if (healed == healed_) end();
  });
}

void soak_faults::begin(const std::string& what) {
  ++begun_;
  if (on_fault) on_fault(what);
}

void soak_faults::end_process(std::size_t node, bool says_farewell) {
  begin((says_farewell ? "stop " : "kill ") + named(node));
  note(node);
  if (on_end) on_end(node, says_farewell);
  if (says_farewell)
    all_.leave(node);
  else
    all_.kill(node);
  end_later([this, node] {
    if (on_fault) on_fault("start " + named(node));
    all_.start(node);
    note(node);
  });
}

void soak_faults::set_slow(std::size_t a, std::size_t b, std::int64_t factor) {
  note(a, b);
  network_.slow(a, b, factor);
  slow_[a * count_ + b] = slow_[b * count_ + a] = factor != 1;
}

void soak_faults::go_wrong() {
  const auto a = below(count_);
  const auto b = (a + 1 + below(count_ - 1)) % count_;
  const auto link = named(a) + " and " + named(b);
  const auto what = below(16);
  if (what < 4) {
    if (network_.is_running(a)) end_process(a, false);
  } else if (what == 4) {
    if (network_.is_running(a) && !network_.is_frozen(a)) end_process(a, true);
  } else if (what < 8) {
    if (!network_.is_running(a) || network_.is_frozen(a)) return;
    begin("freeze " + named(a));
    note(a);
    all_.freeze(a);
    end_later([this, a] {
      if (!network_.is_frozen(a)) return;
      if (on_fault) on_fault("thaw " + named(a));
      note(a);
      thawed_[a] = network_.clock().now_ns();
      all_.thaw(a);
    });
  } else if (what < 12) {
    const bool is_one_way = below(3) == 0;
    if (network_.is_cut(a, b) || network_.is_cut(b, a)) return;
    begin(is_one_way ? "cut from " + named(a) + " to " + named(b) : "cut " + link);
    note(a, b);
    network_.cut_way(a, b);
    if (!is_one_way) network_.cut_way(b, a);
    end_later([this, a, b, link] {
      if (on_fault) on_fault("mend " + link);
      note(a, b);
      network_.mend_way(a, b);
      network_.mend_way(b, a);
    });
  } else if (what < 14) {
    begin("break the connection of " + link);
    note(a, b);
    network_.disconnect(a, b);
  } else if (what == 14) {
    if (is_slow(a, b)) return;
    begin("slow " + link);
    set_slow(a, b, static_cast<std::int64_t>(std::size_t{2} << below(12)));
    end_later([this, a, b, link] {
      if (on_fault) on_fault("no longer slow " + link);
      set_slow(a, b, 1);
    });
  } else if (network_.parted() == 0) {
    const auto first = 1 + below(count_ - 1);
    begin("separate the first " + std::to_string(first));
    network_.separate(first);
    note_separation();
    end_later([this] {
      if (on_fault) on_fault("no longer parted");
      note_separation();
      network_.separate(0);
    });
  }
}

void soak_faults::heal() {
  ++healed_;
  if (on_fault) on_fault("heal");
  for (std::size_t a = 0; a < count_; ++a)
    if (network_.is_frozen(a)) thawed_[a] = network_.clock().now_ns();
  for (std::size_t a = 0; a < count_; ++a)
    for (std::size_t b = 0; b < count_; ++b)
      if (last_trouble(a, b) == network_.clock().now_ns()) note(a, b);
  slow_.assign(slow_.size(), false);
  all_.heal();
}

std::int64_t soak_faults::last_trouble(std::size_t a, std::size_t b) const {
  const auto is_down = [&](std::size_t node) { return !network_.is_running(node) || network_.is_frozen(node); };
  const bool is_wrong = is_down(a) || is_down(b) || is_slow(a, b) || network_.is_cut(a, b) || network_.is_cut(b, a);
  return is_wrong ? network_.clock().now_ns() : stamps_[a * count_ + b];
}

std::int64_t soak_faults::last_trouble(std::size_t node) const {
  std::int64_t result = 0;
  for (std::size_t other = 0; other < count_; ++other)
    if (other != node) result = std::max(result, last_trouble(node, other));
  return result;
}

}  // namespace troupe::simulation
