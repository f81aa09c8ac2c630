// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/SafePyObject.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PythonDispatcherTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <troupe/engine/torch_compat.hpp>

namespace troupe::test {

inline c10::AutogradState& autograd() { return c10::AutogradState::get_tls_state(); }

/// A stand-in for a Python object.
inline c10::SafePyObject no_object() { return {nullptr, nullptr}; }

inline std::shared_ptr<c10::impl::PyObject_TorchDispatchMode> no_mode() {
  return std::make_shared<c10::impl::PyObject_TorchDispatchMode>(nullptr, nullptr);
}

inline std::string as_text(bool value) { return value ? "yes" : "no"; }

/// A field of the thread's state: how to change it, and how to read it. `seen_at_once`: restore() checks this field; otherwise
/// only the destructor does.
struct field {
  std::string name;
  std::function<void()> change;
  std::function<std::string()> see;
  bool seen_at_once = true;
};

inline const std::vector<field>& fields() {
  using at::SavedTensorDefaultHooks;
  static const std::vector<field> all{
    {"grad mode", [] { autograd().set_grad_mode(true); }, [] { return as_text(autograd().get_grad_mode()); }},
    {"inference mode", [] { autograd().set_inference_mode(true); }, [] { return as_text(autograd().get_inference_mode()); }},
    {"forward grad mode", [] { autograd().set_fw_grad_mode(false); }, [] { return as_text(autograd().get_fw_grad_mode()); }},
    {"multithreading", [] { autograd().set_multithreading_enabled(false); },
     [] { return as_text(autograd().get_multithreading_enabled()); }},
    {"view replay", [] { autograd().set_view_replay_enabled(true); },
     [] { return as_text(autograd().get_view_replay_enabled()); }},
    {"graph group", [] { autograd().set_graph_exec_group(no_object()); },
     [] { return as_text(autograd().get_graph_exec_group().has_value()); }},
    {"autocast", [] { at::autocast::set_autocast_enabled(at::kCPU, true); },
     [] { return as_text(at::autocast::is_autocast_enabled(at::kCPU)); }},
    {"autocast's type on the CPU", [] { at::autocast::set_autocast_dtype(at::kCPU, at::kHalf); },
     [] { return std::string(c10::toString(at::autocast::get_autocast_dtype(at::kCPU))); }, false},
    {"autocast's type on CUDA", [] { at::autocast::set_autocast_dtype(at::kCUDA, at::kDouble); },
     [] { return std::string(c10::toString(at::autocast::get_autocast_dtype(at::kCUDA))); }, false},
    {"excluded keys", [] { c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::ZeroTensor, true); },
     [] { return as_text(c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::ZeroTensor)); }},
    {"included keys", [] { c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Tracer, true); },
     [] { return as_text(c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Tracer)); }},
    {"hooks of saved tensors",
     [] {
       SavedTensorDefaultHooks::lazy_initialize();
       SavedTensorDefaultHooks::push_hooks(no_object(), no_object());
     },
     [] { return std::to_string(SavedTensorDefaultHooks::get_tls_state().stack.size()); }},
    {"no hooks of saved tensors", [] { SavedTensorDefaultHooks::disable("told to"); },
     [] { return as_text(SavedTensorDefaultHooks::is_enabled()); }},
    {"tracing of saved tensors", [] { SavedTensorDefaultHooks::set_tracing(true); },
     [] { return as_text(SavedTensorDefaultHooks::get_tls_state().is_tracing); }},
    {"torch functions", [] { at::impl::PythonTorchFunctionTLS::set_disabled_state(at::impl::ALL_DISABLED); },
     [] { return std::to_string(at::impl::PythonTorchFunctionTLS::get_disabled_state()); }},
    {"modes of torch functions",
     [] { at::impl::PythonTorchFunctionTLS::push_onto_stack(std::make_shared<c10::SafePyObject>(no_object())); },
     [] { return std::to_string(at::impl::PythonTorchFunctionTLS::stack_len()); }},
    {"dispatch modes", [] { c10::impl::TorchDispatchModeTLS::push_non_infra_mode_onto_stack(no_mode()); },
     [] { return std::to_string(c10::impl::TorchDispatchModeTLS::stack_len()); }},
    {"dispatch modes of libtorch",
     [] { c10::impl::TorchDispatchModeTLS::set_mode(no_mode(), c10::impl::TorchDispatchModeKey::FAKE); },
     [] { return std::to_string(c10::impl::TorchDispatchModeTLS::stack_len()); }},
    {"Python's dispatcher",
     [] { c10::impl::PythonDispatcherTLS::set_state(reinterpret_cast<c10::impl::PyInterpreter*>(&autograd())); },
     [] { return as_text(c10::impl::PythonDispatcherTLS::get_state() != nullptr); }},
    {"functional views",
     [] {
       at::functionalization::impl::setFunctionalizationReapplyViewsTLS(true);
       c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Functionalize, true);
     },
     [] { return as_text(at::functionalization::impl::getFunctionalizationReapplyViewsTLS()); }},
    {"layers of functorch", [] { at::functorch::initAndPushDynamicLayer(at::functorch::TransformType::Grad, {}, {}, true); },
     [] { return std::to_string(at::functorch::getDynamicLayerStack().size()); }},
    {"observers",
     [] {
       at::addThreadLocalCallback(
         at::RecordFunctionCallback([](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; }));
     },
     [] { return as_text(at::hasThreadLocalCallbacks()); }},
    {"observers switched off", [] { at::enableRecordFunction(false); }, [] { return as_text(at::isRecordFunctionEnabled()); }},
  };
  return all;
}

inline std::vector<field> fields_seen_at_once() {
  std::vector<field> some = fields();
  std::erase_if(some, [](const field& each) { return !each.seen_at_once; });
#if TROUPE_TORCH_HAS_CREATION_HOOKS
  some.push_back({"hooks of created functions", [] { at::impl::NodeCreationHooks::push_hook(no_object()); },
                  [] { return std::to_string(at::impl::NodeCreationHooks::get_tls_state().stack.size()); }});
#endif
  return some;
}

}  // namespace troupe::test
