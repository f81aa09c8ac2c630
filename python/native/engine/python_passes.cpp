// SPDX-License-Identifier: BSD-3-Clause
#include "engine/python_passes.hpp"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/csrc/autograd/engine.h>

#include <troupe/engine/drop_in/libtorch_names.hpp>
#include <troupe/engine/drop_in/substitute.hpp>
#include <troupe/engine/drop_in/symbol_slot.hpp>

namespace torchtroupe {

namespace {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::variable_list;
using troupe::engine::left_because;
using troupe::engine::node_pointer;
using troupe::engine::pass_request;
using troupe::engine::symbol_slot;

std::atomic<bool> is_compiled{false};  // compiled autograd is on: libtorch gives passes to the compiler
std::atomic<std::uint64_t> nanoseconds{0};

/// libtorch's own function of a name, which no other library stands in for.
void* libtorchs(const char* name) {
  void* const library = ::dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(std::string("libtorch_cpu.so has no function ") + name);
  return found;
}

using execute_function = variable_list (*)(Engine*, const edge_list&, const variable_list&, bool, bool, bool, const edge_list&);
execute_function libtorchs_execute = nullptr;
void (*libtorchs_set_compiled)(void*) = nullptr;
node_pointer (*libtorchs_current)() = nullptr;

variable_list run_on_libtorch(Engine& engine, const pass_request& request) {
  return libtorchs_execute(&engine, request.roots, request.gradients, request.keep_graph, request.create_graph,
                           request.accumulate_grad, request.inputs);
}

/// Adds the time of a pass of troupe's engine, unless the pass is nested in another one.
class pass_timer {
 public:
  pass_timer() : around_(std::exchange(innermost, this)), is_running_(!std::exchange(is_timed, true)) {}
  ~pass_timer() {
    innermost = around_;
    if (!is_running_) return;
    is_timed = false;
    nanoseconds.fetch_add((std::chrono::steady_clock::now() - begun_) / std::chrono::nanoseconds(1), std::memory_order_relaxed);
  }
  pass_timer(const pass_timer&) = delete;
  pass_timer& operator=(const pass_timer&) = delete;

  /// The thread's innermost pass is left to libtorch's engine. Passes of troupe's engine nested in it are timed.
  static void leave() {
    if (innermost != nullptr && std::exchange(innermost->is_running_, false)) is_timed = false;
  }

 private:
  static thread_local pass_timer* innermost;
  static thread_local bool is_timed;

  pass_timer* around_;
  bool is_running_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

thread_local pass_timer* pass_timer::innermost = nullptr;
thread_local bool pass_timer::is_timed = false;

variable_list execute(Engine* engine, const edge_list& roots, const variable_list& gradients, bool keep_graph,
                      bool create_graph, bool accumulate_grad, const edge_list& inputs) {
  const pass_request request{roots, gradients, keep_graph, create_graph, accumulate_grad, inputs};
  const pass_timer timer;
  if (is_compiled.load(std::memory_order_acquire)) {
    troupe::engine::count_left(left_because::compiled_autograd);
    return run_on_libtorch(*engine, request);
  }
  return troupe::engine::run_substituted(*engine, run_on_libtorch, request);
}

void set_compiled(void* compiler) {
  is_compiled.store(compiler != nullptr, std::memory_order_release);
  libtorchs_set_compiled(compiler);
}

node_pointer current() { return troupe::engine::current_function(libtorchs_current()); }

[[maybe_unused]] variable_list buffers(torch::autograd::Node* function) {
  static auto* const libtorchs_buffers =
    reinterpret_cast<variable_list (*)(torch::autograd::Node*)>(libtorchs(LIBTORCH_BUFFERS));
  variable_list none = libtorchs_buffers(function);  // throws where libtorch gives no buffers
  return troupe::engine::gradient_buffers(libtorchs_current(), std::move(none));
}

/// Warns once for each reason about which the user can do something.
void left(left_because reason) {
  pass_timer::leave();
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
  void* libtorchs = nullptr;
};
taken_call calls[] = {
  {"libtorch_python.so", LIBTORCH_SET_COMPILED, reinterpret_cast<void*>(set_compiled)},
  {"libtorch_python.so", LIBTORCH_CURRENT, reinterpret_cast<void*>(current)},
  {"libtorch_cpu.so", LIBTORCH_CURRENT, reinterpret_cast<void*>(current)},
  {"libtorch_python.so", LIBTORCH_EXECUTE, reinterpret_cast<void*>(execute)},
#if TROUPE_TORCH_HAS_GRADIENT_BUFFERS
  {"libtorch_python.so", LIBTORCH_BUFFERS, reinterpret_cast<void*>(buffers)},
#endif
};
std::mutex taking;

// `address`: in the slot of the call, or in the default engine. Before the first call, a slot leads to code of its own library,
// which looks the function up.
void refuse_other_owner(const taken_call& call, void* address) {
  Dl_info owner{};
  void* const visible = ::dlsym(RTLD_DEFAULT, call.symbol);  // of a library in LD_PRELOAD, if any
  for (void* const each : {address, visible}) {
    if (each == nullptr || ::dladdr(each, &owner) == 0) continue;
    const std::string file(owner.dli_fname);
    if (!file.ends_with("/libtorch_cpu.so") && !file.ends_with(std::string("/") + call.library))
      throw std::runtime_error("expected that passes run on libtorch's engine, but " + file + " has taken them; " +
                               (file.ends_with("/libtroupe_preload.so")
                                  ? "do not preload it beside torchtroupe"
                                  : "call its troupe_uninstall_engine() before torchtroupe.install()"));
  }
}

// Writes the address of libtorch's function. With the address that the slot had at first, the loader would look the function up
// again at the next call, and could then overwrite what a later take_python_passes() has written.
void give_back() {
  for (const auto& each : calls)
    if (const symbol_slot slot(each.library, each.symbol); slot.address() == each.ours) slot.set(each.libtorchs);
}

}  // namespace

void take_python_passes(bool compiled) {
  const std::scoped_lock lock(taking);
  if (libtorchs_execute == nullptr) {
    for (auto& each : calls) each.libtorchs = libtorchs(each.symbol);
    libtorchs_set_compiled = reinterpret_cast<void (*)(void*)>(calls[0].libtorchs);
    libtorchs_current = reinterpret_cast<node_pointer (*)()>(calls[1].libtorchs);
    libtorchs_execute = reinterpret_cast<execute_function>(calls[3].libtorchs);
  }
  refuse_other_owner(calls[3], *reinterpret_cast<void**>(&Engine::get_default_engine()));  // its table of virtual functions
  // A call that is taken may lead to libtorch again: the loader has looked the function up at that time.
  std::vector<const taken_call*> missing;
  for (const auto& each : calls) {
    void* const address = symbol_slot(each.library, each.symbol).address();
    if (address == each.ours) continue;
    refuse_other_owner(each, address);
    missing.push_back(&each);
  }
  if (!missing.empty() && missing.front() == &calls[0]) is_compiled.store(compiled, std::memory_order_release);
  troupe::engine::listen_to_left(left);
  try {
    for (const auto* const each : missing) symbol_slot(each->library, each->symbol).set(each->ours);
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
