// SPDX-License-Identifier: BSD-3-Clause
#include <random>
#include <stdexcept>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>

#include "engine/oracle.hpp"
#include "engine/random_program.hpp"

namespace troupe::test {

namespace {

using torch::autograd::variable_list;
using trace_ptr = std::shared_ptr<std::vector<std::string>>;

// Which tensors are defined, and their first number: enough to recognise what a hook got.
std::string shown(const variable_list& tensors) {
  std::string text;
  for (const at::Tensor& each : tensors) {
    if (!each.defined()) {
      text += " -";
      continue;
    }
    const at::Tensor some = each.is_sparse() ? each._values().detach() : each.detach();
    text +=
      c10::str(" ", each.sizes(), ":", some.numel() == 0 ? 0.0 : at::real(some).flatten()[0].to(at::kDouble).item<double>());
  }
  return text;
}

enum class effect { none, replaces, fails };

// What a hook does with the tensors that it gets.
struct deed {
  variable_list operator()(const variable_list& tensors) const {
    trace->push_back(name + (looks ? shown(tensors) : ""));
    if (what == effect::fails) throw std::range_error(name + " fails");
    variable_list results = tensors;
    for (at::Tensor& each : results)
      if (what == effect::replaces && each.defined()) each = each * 0.5;
    return results;
  }
  trace_ptr trace;
  std::string name;
  effect what;
  bool looks = true;
};

struct before final : torch::autograd::FunctionPreHook {
  explicit before(deed does) : does(std::move(does)) {}
  variable_list operator()(const variable_list& gradients) override { return does(gradients); }
  deed does;
};

struct after final : torch::autograd::FunctionPostHook {
  explicit after(deed does) : does(std::move(does)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    does.trace->push_back("inputs" + shown(inputs));
    return does(outputs);
  }
  deed does;
};

struct accumulated final : torch::autograd::PostAccumulateGradHook {
  explicit accumulated(deed does) : does(std::move(does)) {}
  void operator()(const at::Tensor& leaf) override { does({leaf.grad()}); }
  deed does;
};

class decorator {
 public:
  decorator(random_program& program, std::uint64_t seed, bool trimmed, trace_ptr trace)
      : program_(program), random_(seed ^ 0x5eed), trimmed_(trimmed), trace_(std::move(trace)) {}

  void on_functions() {
    const auto functions = functions_of(program_.roots);
    for (std::size_t i = 0; i < functions.size(); ++i) {
      if (once_in(8)) functions[i]->add_pre_hook(std::make_unique<before>(next("pre-hook", i)));
      if (once_in(8)) {
        deed does = next("post-hook", i);
        does.looks = !trimmed_;
        functions[i]->add_post_hook(std::make_unique<after>(std::move(does)));
      }
    }
  }

  void on_tensors() {
    for (std::size_t i = 0; i < program_.values.size(); ++i) {
      const at::Tensor& value = program_.values[i];
      if (once_in(8))
        value.register_hook([does = next("tensor hook", i)](const at::Tensor& gradient) { return does({gradient})[0]; });
      if (!value.is_leaf() && once_in(8)) {
        value.retain_grad();
        ++program_.features["retained gradient"];
      }
      if (value.is_leaf() && once_in(6)) {
        torch::autograd::impl::set_post_acc_grad_hooks(value,
                                                       std::make_unique<accumulated>(next("post-accumulate-grad hook", i)));
      }
    }
  }

 private:
  bool once_in(std::size_t n) { return random_() % n == 0; }

  deed next(const std::string& kind, std::size_t index) {
    ++program_.features[kind];
    const effect what = once_in(300) ? effect::fails : once_in(4) ? effect::replaces : effect::none;
    program_.features["failing hook"] += what == effect::fails ? 1 : 0;
    program_.features["replacing hook"] += what == effect::replaces ? 1 : 0;
    return {trace_, kind + " " + std::to_string(index), what};
  }

  random_program& program_;
  std::mt19937_64 random_;
  bool trimmed_;
  trace_ptr trace_;
};

}  // namespace

void add_hooks(random_program& program, std::uint64_t seed, bool trimmed, std::shared_ptr<std::vector<std::string>> trace) {
  decorator add(program, seed, trimmed, std::move(trace));
  add.on_functions();
  add.on_tensors();
}

}  // namespace troupe::test
