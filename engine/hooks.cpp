// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/hooks.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <typeinfo>

#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/cpp_hook.h>
#include <torch/csrc/autograd/function_hook.h>

namespace troupe::engine {

using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

// Calls each hook. The list may change while this loop runs. A removed hook is not called. An added hook is not called, unless
// it has the address of a removed hook.
template <class Hooks, class Call>
void call_each(const Hooks& hooks, Call call) {
  c10::SmallVector<typename Hooks::value_type::pointer, 8> at_first;
  for (const auto& hook : hooks)
    if (hook) at_first.push_back(hook.get());
  for (std::size_t i = 0; i < at_first.size(); ++i) {
    const auto is_this = [&](const auto& hook) { return hook.get() == at_first[i]; };
    // The hook is usually still at its index.
    if ((i < hooks.size() && is_this(hooks[i])) || std::any_of(hooks.begin(), hooks.end(), is_this)) call(*at_first[i]);
  }
}

// Whether a tensor hook must not run, because its input is unreached. A hook of C++ code stores the index of its input. Its
// type is compared by name, because libtorch does not export the type for a dynamic_cast. Python's hooks have other types, but
// Python code makes no recv_backward, and only a recv_backward has unreached inputs.
bool is_left_out(const torch::autograd::FunctionPreHook& hook, const std::vector<bool>* unreached) {
  if (unreached == nullptr || typeid(hook).name() != std::string_view("N5torch8autograd24CppFunctionTensorPreHookE"))
    return false;
  return unreached->at(static_cast<const torch::autograd::CppFunctionTensorPreHook&>(hook).value_idx_);
}

// Calls the hooks of retained gradients, which are in a map. A hook may change that map and make iterators invalid, so the loop
// goes over a copy of the keys.
void call_retained(Node& function, variable_list& inputs, const std::vector<bool>* unreached) {
  const auto& hooks = function.retains_grad_hooks();
  std::vector<std::size_t> indices;
  indices.reserve(hooks.size());
  for (const auto& [index, hook] : hooks)
    if (unreached == nullptr || !unreached->at(index)) indices.push_back(index);
  for (const std::size_t index : indices)
    if (const auto found = hooks.find(index); found != hooks.end() && found->second) inputs = (*found->second)(inputs);
}

}  // namespace

void call_tensor_hooks(Node& function, variable_list& inputs, const std::vector<bool>* unreached) {
  call_each(function.tensor_pre_hooks(), [&](auto& hook) {
    if (!is_left_out(hook, unreached)) inputs = hook(inputs);
  });
  if (!function.retains_grad_hooks().empty()) call_retained(function, inputs, unreached);
}

void call_pre_hooks(Node& function, variable_list& inputs) {
  call_each(function.pre_hooks(), [&](auto& hook) { inputs = hook(inputs); });
}

void call_post_hooks(Node& function, variable_list& outputs, const variable_list& inputs) {
  call_each(function.post_hooks(), [&](auto& hook) { outputs = hook(outputs, inputs); });
}

}  // namespace troupe::engine
