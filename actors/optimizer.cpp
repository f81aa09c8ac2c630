// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <troupe/actors/optimizer_checkpoints.hpp>
#include <troupe/actors/optimizer_parts.hpp>
#include <troupe/engine/gradient_table.hpp>

namespace troupe {

namespace {

/// Records in the node's trace how long the scope took.
class traced {
 public:
  traced(node& here, const char* what) : here_(here), what_(what), begin_(now()) {}
  ~traced() { here_.trace(what_, "optimizer", begin_, now()); }
  traced(const traced&) = delete;
  traced& operator=(const traced&) = delete;

 private:
  static std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

  node& here_;
  const char* what_;
  std::int64_t begin_;
};

/// Throws unless the context is open on this thread and a pass of the context has completed. Throws also while a pass runs,
/// because some nodes would step with the gradients of that pass, and other nodes without them.
void require_settled(const context& pass, const char* who) {
  require_current(pass, who);
  if (pass.running())
    throw error(errc::misuse,
                std::string(who) + ": a backward pass of the context is still running; wait for its future (get) first");
  if (!pass.has_completed_pass())
    throw error(errc::misuse, std::string(who) +
                                ": no backward pass of the context has completed, so it has no gradients; run "
                                "context.backward(...).get() first");
}

}  // namespace

struct optimizer::implementation {
  optimizer_parts parts;
  std::optional<double> new_rate = {};  // a rate that the nodes do not have yet: the next step or save sends it
  bool gathered = false;                // whether gradients were gathered since the last step

  void tell_rate() {
    if (!new_rate) return;
    parts.everywhere(
      "troupe.optimizer.set_rate",
      [&](const optimizer_parts::group&) {
        return attributes{{"rate", *new_rate}};
      },
      [&] { parts.local().set_learning_rate(*new_rate); });
    new_rate.reset();
  }

  /// Steps with `gradients` on this node and with the gradients of the context on the other nodes. If `gradients` is null,
  /// steps with the gathered gradients.
  std::optional<double> step(const engine::gradient_table* gradients, std::optional<double> clip_norm) {
    if (clip_norm && !(*clip_norm > 0))
      throw error(errc::misuse, "optimizer::step: clip_norm is " + std::to_string(*clip_norm) + ", expected a number above 0");
    if (gradients == nullptr && !gathered)
      throw error(errc::misuse,
                  "optimizer::step: no context was gathered since the last step; call gather(context), or step(context)");
    const traced span(parts.here(), "optimizer.step");
    std::optional<double> norm;
    double scale = 1;
    if (clip_norm) {
      norm = parts.norm(gradients);
      scale = std::min(1.0, *clip_norm / (*norm + 1e-6));
    }
    attributes values{{"scale", scale}};
    if (new_rate) values["rate"] = *new_rate;
    parts.everywhere(
      gradients ? "troupe.optimizer.step" : "troupe.optimizer.gathered_step",
      [&](const optimizer_parts::group&) { return values; },
      [&] {
        auto& local = parts.local();
        if (new_rate) local.set_learning_rate(*new_rate);
        gradients ? local.step(*gradients, scale) : local.gathered_step(scale);
      });
    new_rate.reset();
    return norm;
  }

  /// Runs `what`. If `what` throws, all nodes that can be reached forget their gathered gradients.
  template <class F>
  auto forgetting(F&& what) {
    try {
      return what();
    } catch (...) {
      gathered = false;
      try {
        parts.everywhere(
          "troupe.optimizer.forget", [](const optimizer_parts::group&) { return attributes{}; },
          [&] { parts.local().forget_gathered(); });
      } catch (const std::exception&) {
        // The first error is reported.
      }
      throw;
    }
  }
};

optimizer::optimizer(node& here, optimizer_settings options, std::vector<remote_module> modules, const named_tensors& local,
                     named_tensors local_buffers)
    : implementation_(new implementation{.parts = {here, options, std::move(modules), local, std::move(local_buffers)}}) {}

optimizer::~optimizer() = default;

std::optional<double> optimizer::step(const context& pass, std::optional<double> clip_norm) {
  require_settled(pass, "optimizer::step");
  return implementation_->step(pass.gradients().get(), clip_norm);
}

void optimizer::gather(const context& pass) {
  require_settled(pass, "optimizer::gather");
  auto& parts = implementation_->parts;
  implementation_->forgetting([&] {
    parts.everywhere(
      "troupe.optimizer.gather", [](const optimizer_parts::group&) { return attributes{}; },
      [&] { parts.local().gather(*pass.gradients()); });
  });
  implementation_->gathered = true;
}

std::optional<double> optimizer::step(std::optional<double> clip_norm) {
  auto norm = implementation_->forgetting([&] { return implementation_->step(nullptr, clip_norm); });
  implementation_->gathered = false;
  return norm;
}

void optimizer::set_learning_rate(double rate) {
  objects::check_learning_rate(rate);
  implementation_->new_rate = rate;
}

void optimizer::expect_room(const std::string& folder, const std::string& node_folder) {
  optimizer_checkpoints(implementation_->parts, folder).expect_room(node_folder);
}

void optimizer::save(const std::string& folder, const attributes& about, const std::string& node_folder) {
  const traced span(implementation_->parts.here(), "optimizer.save");
  implementation_->tell_rate();
  optimizer_checkpoints(implementation_->parts, folder).save(about, node_folder);
}

attributes optimizer::load(const std::string& folder) {
  auto about = optimizer_checkpoints(implementation_->parts, folder).load();
  implementation_->new_rate.reset();
  return about;
}

}  // namespace troupe
