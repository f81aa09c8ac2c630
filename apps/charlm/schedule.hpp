// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/apps/charlm/schedule_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe::apps::charlm {

/// The order in which the stages of a pipeline run the forwards and the backwards of their micro-batches.
///   dataflow     a stage runs whatever has come, forwards and backwards at once: it has no bubble to speak of, needs more
///                than a core, and holds all micro-batches.
///   gpipe        all forwards, then all backwards (Huang et al., 2019).
///   1f1b         one forward, one backward: a backward runs as soon as its gradient has come (PipeDream-Flush, Narayanan et
///                al., 2021).
///   zero_bubble  as 1f1b, but a stage computes the gradients of weights later, while it would wait (ZB-H1, Qi et al., 2023).
enum class schedule : std::uint8_t { dataflow, gpipe, one_forward_one_backward, zero_bubble };

/// "dataflow", "gpipe", "1f1b" or "zero-bubble": the names that `troupe train --schedule` takes.
constexpr std::string_view to_text(schedule what) {
  constexpr std::string_view names[] = {"dataflow", "gpipe", "1f1b", "zero-bubble"};
  return names[static_cast<std::size_t>(what)];
}

/// The schedule with this name; none if no schedule has the name.
constexpr std::optional<schedule> schedule_named(std::string_view name) {
  for (const auto each : {schedule::dataflow, schedule::gpipe, schedule::one_forward_one_backward, schedule::zero_bubble})
    if (to_text(each) == name) return each;
  return std::nullopt;
}

/// How long stages have worked, in seconds.
struct work_times {
  double forward = 0;
  double backward = 0;  // with zero_bubble without the gradients of linear layers' weights
  double weights = 0;   // with zero_bubble: the gradients of linear layers' weights
  double span = 0;      // from the beginning of the first work to the end of the last work

  double work() const { return forward + backward + weights; }
  work_times& operator+=(const work_times& other) {
    forward += other.forward, backward += other.backward, weights += other.weights, span += other.span;
    return *this;
  }
  /// The share of the span in which the stages did not work. `span`: summed over the stages, as the work is.
  double bubble() const { return span > 0 ? 1 - work() / span : 0; }
};

/// The bubble by the published formulas, if all stages take equally long and messages take no time: (s - 1) / (m + s - 1). With
/// zero_bubble, a stage waits for F + B - W of the times in `measured` instead of F + B + W, s - 1 times.
double bubble_by_formula(schedule how, std::int64_t stages, std::int64_t micro_batches, const work_times& measured);

}  // namespace troupe::apps::charlm
