// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/thread_state.hpp>

#include <functional>
#include <string>
#include <utility>

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/autocast_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/SafePyObject.h>
#include <c10/core/impl/PythonDispatcherTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <troupe/engine/spare_of_thread.hpp>

namespace troupe::engine {

using at::functionalization::impl::getFunctionalizationReapplyViewsTLS;
using at::functionalization::impl::setFunctionalizationReapplyViewsTLS;
using at::impl::PythonTorchFunctionTLS;
using c10::DispatchKey;
using c10::impl::PythonDispatcherTLS;
using c10::impl::TorchDispatchModeTLS;

namespace {

std::uintptr_t identity(const c10::SafePyObject& object) {
  return reinterpret_cast<std::uintptr_t>(object.ptr(&object.pyinterpreter()));
}

std::uintptr_t identity(const void* object) { return reinterpret_cast<std::uintptr_t>(object); }

}  // namespace

thread_state_keeper::state::state()
    : keys(c10::impl::raw_local_dispatch_key_set),
      autograd(c10::AutogradState::get_tls_state()),
      observers(at::get_record_function_tls_()),
      functorch(at::functorch::functorchTLSAccessor()),
      torch_functions(PythonTorchFunctionTLS::get_state()),
      saved_tensors(at::SavedTensorDefaultHooks::get_tls_state()),
      created(creation_hooks::get()),
      noted_keys(*keys),
      noted_autograd(*autograd) {
  note();
}

void thread_state_keeper::state::note() {
  keys.note();
  autograd.note();
  observers.note();
  functorch.note();
  torch_functions.note();
  saved_tensors.note();
  created.note();
  noted_keys = *keys;
  // While a dispatch mode or a dispatcher is active, the dispatch key of its kind is included.
  const c10::DispatchKeySet of_python{DispatchKey::Python, DispatchKey::PythonDispatcher, DispatchKey::Functionalize};
  has_empty_containers = !noted_keys.included_.has_any(of_python) && !autograd->get_graph_exec_group() &&
                         observers->sorted_tls_callbacks_.empty() && *functorch == nullptr &&
                         PythonTorchFunctionTLS::stack_len() == 0 && saved_tensors->stack.empty() &&
                         !saved_tensors->disabled_error_message && created->stack.empty();
  if (has_empty_containers) {  // otherwise the containers may hold Python objects
    noted_autograd = *autograd;
    noted_torch_functions = PythonTorchFunctionTLS::get_disabled_state();
    noted_observed = observers->tls_record_function_enabled_;
    noted_tracing = saved_tensors->is_tracing;
  }
}

// To be called if all containers were empty. The dispatch keys come last, because the other calls change them.
void thread_state_keeper::state::set_back() const {
  c10::AutogradState::set_tls_state(noted_autograd);
  at::set_record_function_tls_({{}, noted_observed});
  at::functorch::setFuncTorchTLS(nullptr);
  TorchDispatchModeTLS::set_state({});
  PythonTorchFunctionTLS::set_state({});
  PythonTorchFunctionTLS::set_disabled_state(noted_torch_functions);
  at::SavedTensorDefaultHooks::set_tls_state({{}, {}, noted_tracing});
  creation_hooks::set({});
  PythonDispatcherTLS::reset_state();
  setFunctionalizationReapplyViewsTLS(false);
  c10::impl::_force_tls_local_dispatch_key_set(noted_keys);
}

// Noting a state takes longer than checking that nothing has changed since.
thread_state_keeper::state& thread_state_keeper::claim_state() {
  state* const kept = spare_of_thread<state>::take();
  return kept != nullptr ? *kept : *new state();
}

thread_state_keeper::thread_state_keeper() : state_(claim_state()), types_(types_now()) {
  if (state_.is_changed()) state_.note();
  if (!state_.has_empty_containers) {
    whole_ = std::make_unique<at::ThreadLocalState>();
    contents_ = contents();
  }
}

thread_state_keeper::~thread_state_keeper() {
  if (is_changed() || types_now() != types_) set_back();
  spare_of_thread<state>::keep(&state_);
}

thread_state_keeper::autocast_types thread_state_keeper::types_now() {
  return {at::autocast::get_autocast_dtype(at::kCPU), at::autocast::get_autocast_dtype(at::kCUDA)};
}

// Returns the contents of the containers: one number for each element.
c10::SmallVector<std::uintptr_t, 16> thread_state_keeper::contents() const {
  c10::SmallVector<std::uintptr_t, 16> all;
  for (const auto& observer : state_.observers->sorted_tls_callbacks_) {
    all.push_back(observer.handle_);
    all.push_back(observer.enabled_ ? 1 : 0);
  }
  if (*state_.functorch)
    for (const auto& layer : at::functorch::getDynamicLayerStack()) all.push_back(static_cast<std::uintptr_t>(layer.layerId()));
  for (std::int64_t i = 0; i < TorchDispatchModeTLS::stack_len(); ++i)
    all.push_back(identity(TorchDispatchModeTLS::get_stack_at(i).get()));
  for (std::int64_t i = 0; i < PythonTorchFunctionTLS::stack_len(); ++i)
    all.push_back(identity(PythonTorchFunctionTLS::get_stack_at(i).get()));
  if (!state_.saved_tensors->stack.empty()) {
    const auto& [pack, unpack] = state_.saved_tensors->stack.top();
    all.push_back(identity(pack));
    all.push_back(identity(unpack));
  }
  for (const auto& hook : state_.created->stack) all.push_back(identity(hook));
  if (const auto& reason = state_.saved_tensors->disabled_error_message) all.push_back(std::hash<std::string>{}(*reason));
  all.push_back(identity(PythonDispatcherTLS::get_state()));
  all.push_back(getFunctionalizationReapplyViewsTLS() ? 1 : 0);
  return all;
}

void thread_state_keeper::set_back() {
  whole_ ? at::ThreadLocalState::setThreadLocalState(*whole_) : state_.set_back();
  at::autocast::set_autocast_dtype(at::kCPU, types_.cpu);
  at::autocast::set_autocast_dtype(at::kCUDA, types_.cuda);
  state_.note();  // a container with the same elements may have other memory now
}

}  // namespace troupe::engine
