// SPDX-License-Identifier: BSD-3-Clause
#include "engine/drop_in/both_engines.hpp"

#include <sstream>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/engine/torch_compat.hpp>

namespace troupe::test {

using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

struct told_function final : Node {
  told_function(std::string name, std::function<variable_list(variable_list)> what, edge_list next)
      : Node(std::move(next)), what(std::move(what)), given_name(std::move(name)) {}
  variable_list apply(variable_list&& inputs) override { return what(std::move(inputs)); }
  std::string name() const override { return given_name; }
  std::function<variable_list(variable_list)> what;
  std::string given_name;
};

}  // namespace

bool inside_troupe() {
  const auto running = torch::autograd::get_current_node();
  return running != nullptr && running->name() == "troupe::pass";
}

outcomes on_both(const std::function<std::vector<std::string>()>& run) {
  outcomes found;
  found.libtorch = run();
  const installed engine;
  found.troupe = run();
  return found;
}

engine::node_pointer make_function(std::string name, std::function<variable_list(variable_list)> what, const at::Tensor& like,
                                   edge_list next) {
  engine::node_pointer made = engine::make_node<told_function>(std::move(name), std::move(what), std::move(next));
  made->add_input_metadata(like);
  return made;
}

at::Tensor through(const at::Tensor& from, std::function<at::Tensor(at::Tensor)> what, std::string name) {
  auto function = make_function(
    std::move(name), [what = std::move(what)](variable_list inputs) { return variable_list{what(std::move(inputs[0]))}; }, from,
    {torch::autograd::impl::gradient_edge(from)});
  at::Tensor result = from.detach().clone();
  torch::autograd::impl::set_gradient_edge(result, {std::move(function), 0});
  return result;
}

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return std::string("std: ") + error.what();
  } catch (...) {
    return "no std::exception";
  }
  return "none";
}

std::string text_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  const at::Tensor flat = tensor.detach().contiguous();
  std::ostringstream text;
  text << flat.sizes() << std::hex;
  const auto* bytes = static_cast<const unsigned char*>(flat.const_data_ptr());
  for (std::size_t i = 0; i < flat.nbytes(); ++i) text << ' ' << static_cast<int>(bytes[i]);
  return text.str();
}

}  // namespace troupe::test
