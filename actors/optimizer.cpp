// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer.hpp>

#include <chrono>
#include <utility>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/optimizer_checkpoints.hpp>
#include <troupe/actors/optimizer_saves.hpp>
#include <troupe/actors/optimizer_shards.hpp>
#include <troupe/actors/optimizer_steps.hpp>

namespace troupe {

namespace {

/// Records the time of its scope as a span in the node's trace.
class traced {
 public:
  traced(const peer& here, const char* what) : here_(here), what_(what), begin_(now()) {}
  ~traced() {
    if (const nodes::visit inside(link_of(here_)); inside)
      inside->services().recorder.record(what_, "optimizer", begin_, now());
  }
  traced(const traced&) = delete;
  traced& operator=(const traced&) = delete;

 private:
  static std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

  const peer& here_;
  const char* what_;
  std::int64_t begin_;
};

}  // namespace

struct optimizer::implementation {
  optimizer_shards shards;
  optimizer_steps steps{shards};
  optimizer_saves saves{shards};
};

optimizer::optimizer(node& here, optimizer_settings options, std::vector<remote_module> modules, const named_tensors& local,
                     named_tensors local_buffers)
    : optimizer(here, {{.modules = std::move(modules), .local = local}}, std::move(options), std::move(local_buffers)) {}

optimizer::optimizer(node& here, const std::vector<parameter_group>& groups, optimizer_settings options,
                     named_tensors local_buffers)
    : implementation_(new implementation{.shards = {here, options, groups, std::move(local_buffers)}}) {}

optimizer::~optimizer() = default;

std::optional<double> optimizer::step(const context& pass, std::optional<double> clip_norm) {
  const traced span(implementation_->shards.here(), "optimizer.step");
  implementation_->saves.expect_saved();
  return implementation_->steps.step(pass, clip_norm);
}

void optimizer::gather(const context& pass) { implementation_->steps.gather(pass); }

std::optional<double> optimizer::step(std::optional<double> clip_norm) {
  const traced span(implementation_->shards.here(), "optimizer.step");
  implementation_->saves.expect_saved();
  return implementation_->steps.step(clip_norm);
}

void optimizer::set_learning_rate(double rate, std::optional<std::size_t> group) {
  implementation_->steps.set_rate(rate, group);
}

void optimizer::expect_disk_space(const std::string& folder, const std::string& node_folder) {
  optimizer_checkpoints(implementation_->shards, folder).expect_disk_space(node_folder);
}

void optimizer::save(const std::string& folder, const attributes& about, const std::string& node_folder) {
  const traced span(implementation_->shards.here(), "optimizer.save");
  implementation_->steps.settle_all("optimizer::save");
  implementation_->saves.save(folder, about, node_folder);
}

future<done> optimizer::start_save(const std::string& folder, const attributes& about, const std::string& node_folder) {
  const traced span(implementation_->shards.here(), "optimizer.start_save");
  implementation_->steps.settle_all("optimizer::start_save");
  return implementation_->saves.start(folder, about, node_folder);
}

attributes optimizer::load(const std::string& folder) {
  implementation_->shards.expect_to_ask();  // a continuation can't wait for a save either
  implementation_->saves.end();
  return implementation_->steps.load(folder);
}

}  // namespace troupe
