// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include <ATen/FuncTorchTLS.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>

#include <troupe/engine/torch_compat.hpp>

namespace troupe::engine {

/// Restores libtorch's thread-local state to what it was at construction. libtorch sets the whole state around each function,
/// which takes longer than all else that troupe does for a function. The keeper checks for changes instead. The containers of
/// the state (TH-5) hold: modes, default hooks of saved tensors or the reason that disables these hooks, hooks of the creation
/// of functions, layers of functorch, observers, the group of graph execution.
///   TH-1  restore() checks for changes of: grad, inference and forward grad mode, multithreading, view replay, whether
///         autocast is on, dispatch keys and modes, modes of torch functions, default hooks of saved tensors, hooks of
///         the creation of functions, layers of functorch, observers (record functions). If one of these has changed, restore()
///         sets all of these back.
///   TH-2  autocast's types on the CPU and CUDA can be read only by calls into libtorch, so only the destructor checks these
///         types. Whenever the rest is set back, these types are set back too.
///   TH-3  if nothing has changed, restore() allocates nothing.
///   TH-4  not checked, because a check would cost too much: autocast's types of other devices, debug info, the warning
///         handler, objects that Python keeps by thread, implicit replication of distributed tensors, hooks of saved tensors
///         below the topmost ones. If nothing else has changed, restore() leaves a change of these as it is.
///   TH-5  if a container held something at construction, restore() sets back TH-4 too, except the warning handler, whenever it
///         sets back the rest. If all containers were empty, restore() leaves TH-4 as it is, but removes default hooks.
class thread_state_keeper {
 public:
  thread_state_keeper();
  ~thread_state_keeper();

  /// To be called on the thread that constructed the keeper.
  void restore() {
    if (is_changed()) set_back();
  }

 private:
  // A thread-local object of libtorch and a copy of its bytes. The bytes change when the size of a container in the object
  // changes.
  template <class Value>
  class watched {
   public:
    explicit watched(const Value& live) : live_(&live) { note(); }
    const Value& operator*() const { return *live_; }
    const Value* operator->() const { return live_; }
    void note() { std::memcpy(bytes_.data(), static_cast<const void*>(live_), sizeof(Value)); }
    std::uint64_t difference() const {
      std::uint64_t all = 0;
      for (std::size_t i = 0; i < bytes_.size(); ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, reinterpret_cast<const char*>(live_) + i * sizeof(word), sizeof(word));
        all |= word ^ bytes_[i];
      }
      return all;
    }

   private:
    static_assert(sizeof(Value) % sizeof(std::uint64_t) == 0);
    const Value* live_;
    alignas(16) std::array<std::uint64_t, sizeof(Value) / sizeof(std::uint64_t)> bytes_;
  };

  // The state that restore() always checks, and the values that state::set_back() sets. The keeper uses state::set_back() only
  // if all containers (TH-5) were empty when the keeper was made.
  struct state {
    state();
    bool is_changed() const {
      const std::uint64_t flags =
        keys.difference() | autograd.difference() | functorch.difference() | torch_functions.difference();
      if (!has_empty_containers)
        return (flags | observers.difference() | saved_tensors.difference() | created.difference()) != 0;
      // These three are large. While their containers are empty, only their flags can differ.
      return flags != 0 || !observers->sorted_tls_callbacks_.empty() ||
             observers->tls_record_function_enabled_ != noted_observed || !saved_tensors->stack.empty() ||
             saved_tensors->disabled_error_message || saved_tensors->is_tracing != noted_tracing || !created->stack.empty();
    }
    void note();
    void set_back() const;

    watched<c10::impl::PODLocalDispatchKeySet> keys;
    watched<c10::AutogradState> autograd;
    watched<at::RecordFunctionTLS> observers;
    watched<std::unique_ptr<at::functorch::FuncTorchTLSBase>> functorch;
    watched<at::impl::PythonTorchFunctionTLS> torch_functions;
    watched<at::impl::SavedTensorDefaultHooksTLS> saved_tensors;
    watched<creation_hooks::state> created;

    bool has_empty_containers = false;
    c10::impl::LocalDispatchKeySet noted_keys;
    c10::AutogradState noted_autograd;
    at::impl::TorchFunctionDisabledState noted_torch_functions{};
    bool noted_observed = false;
    bool noted_tracing = false;
  };

  struct autocast_types {
    bool operator==(const autocast_types&) const = default;
    c10::ScalarType cpu;
    c10::ScalarType cuda;
  };

  static state& claim_state();
  static autocast_types types_now();

  bool is_changed() const { return state_.is_changed() || (whole_ && contents() != contents_); }
  c10::SmallVector<std::uintptr_t, 16> contents() const;
  void set_back();

  state& state_;
  const autocast_types types_;
  // Set only if a container holds something, because a copy of the whole state takes long.
  std::unique_ptr<at::ThreadLocalState> whole_;
  c10::SmallVector<std::uintptr_t, 16> contents_;
};

}  // namespace troupe::engine
