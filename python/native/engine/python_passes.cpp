// SPDX-License-Identifier: BSD-3-Clause
#include "engine/python_passes.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/engine.h>

#include <troupe/engine/drop_in/libtorch_names.hpp>
#include <troupe/engine/drop_in/substitute.hpp>

#include "symbol_slot.hpp"

namespace torchtroupe {

namespace {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::variable_list;
using troupe::engine::left_because;
using troupe::engine::node_pointer;
using troupe::engine::pass_request;

std::atomic<bool> is_compiled{false};  // compiled autograd is on: libtorch gives passes to the compiler
std::atomic<std::uint64_t> nanoseconds{0};
thread_local bool is_timed = false;

/// libtorch's own function of a name, which no other library stands in for.
template <class Function>
Function libtorchs(const char* name) {
  void* const library = ::dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(std::string("libtorch_cpu.so has no function ") + name);
  return reinterpret_cast<Function>(found);
}

using execute_function = variable_list (*)(Engine*, const edge_list&, const variable_list&, bool, bool, bool, const edge_list&);
execute_function libtorchs_execute = nullptr;
void (*libtorchs_set_compiled)(void*) = nullptr;
node_pointer (*libtorchs_current)() = nullptr;

variable_list run_on_libtorch(Engine& engine, const pass_request& request) {
  return libtorchs_execute(&engine, request.roots, request.gradients, request.keep_graph, request.create_graph,
                           request.accumulate_grad, request.inputs);
}

/// Adds the time of a pass, unless it is nested in another one.
class pass_timer {
 public:
  pass_timer() : is_outermost_(!is_timed) { is_timed = true; }
  ~pass_timer() {
    if (!is_outermost_) return;
    is_timed = false;
    nanoseconds.fetch_add((std::chrono::steady_clock::now() - begun_) / std::chrono::nanoseconds(1), std::memory_order_relaxed);
  }
  pass_timer(const pass_timer&) = delete;
  pass_timer& operator=(const pass_timer&) = delete;

 private:
  bool is_outermost_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

variable_list execute(Engine* engine, const edge_list& roots, const variable_list& gradients, bool keep_graph,
                      bool create_graph, bool accumulate_grad, const edge_list& inputs) {
  const pass_request request{roots, gradients, keep_graph, create_graph, accumulate_grad, inputs};
  if (is_compiled.load(std::memory_order_acquire)) {
    troupe::engine::count_left(left_because::compiled_autograd);
    return run_on_libtorch(*engine, request);
  }
  const pass_timer timer;
  return troupe::engine::run_substituted(*engine, run_on_libtorch, request);
}

void set_compiled(void* compiler) {
  is_compiled.store(compiler != nullptr, std::memory_order_release);
  libtorchs_set_compiled(compiler);
}

node_pointer current() { return troupe::engine::current_function(libtorchs_current()); }

/// Warns once for each reason about which the user can do something.
void warn_of(left_because reason) {
  switch (reason) {
    case left_because::anomaly_mode:
      TORCH_WARN_ONCE("torchtroupe: a backward pass is left to PyTorch's engine, because anomaly mode is on");
      break;
    case left_because::other_device:
      TORCH_WARN_ONCE(
        "torchtroupe: a backward pass is left to PyTorch's engine, because a function of it is on a device that is "
        "neither a CPU nor the accelerator of this process");
      break;
    case left_because::compiled_autograd:
      TORCH_WARN_ONCE("torchtroupe: a backward pass is left to PyTorch's engine, because compiled autograd is on");
      break;
    case left_because::refused:
    case left_because::single_function:
      break;
  }
}

/// A call from a library of libtorch to a function that troupe stands in for.
struct taken_call {
  const char* library;
  const char* symbol;
  void* ours;
  void* before = nullptr;  // null unless the call is taken
};
std::array calls{
  taken_call{"libtorch_python.so", LIBTORCH_SET_COMPILED, reinterpret_cast<void*>(set_compiled)},
  taken_call{"libtorch_python.so", LIBTORCH_CURRENT, reinterpret_cast<void*>(current)},
  taken_call{"libtorch_cpu.so", LIBTORCH_CURRENT, reinterpret_cast<void*>(current)},
  taken_call{"libtorch_python.so", LIBTORCH_EXECUTE, reinterpret_cast<void*>(execute)},
};
std::mutex taking;

// Before the first call, a slot leads to code of its own library, which looks the function up.
void refuse_other_owner(const taken_call& call, void* address) {
  Dl_info owner{};
  void* const visible = ::dlsym(RTLD_DEFAULT, call.symbol);  // of a library in LD_PRELOAD, if any
  for (void* const each : {address, visible}) {
    if (each == nullptr || ::dladdr(each, &owner) == 0) continue;
    const std::string file(owner.dli_fname);
    if (!file.ends_with("/libtorch_cpu.so") && !file.ends_with(std::string("/") + call.library))
      throw std::runtime_error("expected that passes run on libtorch's engine, but " + file +
                               " has taken them; do not preload libtroupe_preload.so beside torchtroupe");
  }
}

void give_back() {
  for (auto& each : calls) {
    if (each.before != nullptr) symbol_slot(each.library, each.symbol).replace(each.ours, each.before);
    each.before = nullptr;
  }
}

}  // namespace

void take_python_passes(bool compiled) {
  const std::scoped_lock lock(taking);
  if (calls.back().before != nullptr) return;
  libtorchs_execute = libtorchs<execute_function>(LIBTORCH_EXECUTE);
  libtorchs_set_compiled = libtorchs<void (*)(void*)>(LIBTORCH_SET_COMPILED);
  libtorchs_current = libtorchs<node_pointer (*)()>(LIBTORCH_CURRENT);
  for (const auto& each : calls) refuse_other_owner(each, symbol_slot(each.library, each.symbol).address());
  is_compiled.store(compiled, std::memory_order_release);
  troupe::engine::listen_to_left(warn_of);
  try {
    for (auto& each : calls) {
      const symbol_slot slot(each.library, each.symbol);
      void* const before = slot.address();
      if (!slot.replace(before, each.ours))
        throw std::runtime_error(std::string(each.library) + " changes its table; try again");
      each.before = before;
    }
  } catch (...) {
    give_back();
    throw;
  }
}

void return_python_passes() {
  const std::scoped_lock lock(taking);
  give_back();
}

std::uint64_t nanoseconds_in_passes() noexcept { return nanoseconds.load(); }

}  // namespace torchtroupe
