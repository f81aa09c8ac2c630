// SPDX-License-Identifier: BSD-3-Clause
#include "troupe_rpc.hpp"

#include <unistd.h>
#include <optional>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

namespace troupe::bench {

namespace {

settings named(const std::string& name) {
  settings result;
  result.name = name;
  return result;
}

class driver : public round_trips {
 public:
  explicit driver(std::uint16_t port) : here_(named("driver")), to_(here_.peer(here_.join("127.0.0.1", port))) {}

  void open() override { context_.emplace(here_); }
  void close() override { context_.reset(); }
  at::Tensor call(const at::Tensor& x) override { return to_.call("add", {x, x}).get().tensors.at(0); }
  std::vector<at::Tensor> call_at_once(const at::Tensor& x, int calls) override {
    std::vector<future<call_reply>> started;
    for (int i = 0; i < calls; ++i) started.push_back(to_.call("add", {x, x}));
    std::vector<at::Tensor> result;
    for (const auto& each : started) result.push_back(each.get().tensors.at(0));
    return result;
  }
  void backward(const at::Tensor& root) override { context_->backward({root}).get(); }
  at::Tensor gradient(const at::Tensor& leaf) override { return context_->gradient(leaf); }

 private:
  node here_;
  peer to_;
  std::optional<context> context_;
};

}  // namespace

std::unique_ptr<round_trips> make_troupe_driver(std::uint16_t port) { return std::make_unique<driver>(port); }

void serve_troupe(const std::function<void(std::uint16_t)>& tell_port, int stop) {
  node here{named("server")};
  here.functions().add(
    "add", [](call_arguments& arguments) { return call_reply{{arguments.tensors.at(0) + arguments.tensors.at(1)}}; });
  tell_port(here.port());
  char word;
  [[maybe_unused]] const auto asked = ::read(stop, &word, 1);
}

}  // namespace troupe::bench
