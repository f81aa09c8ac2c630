// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/drop_in/install.hpp>

#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string_view>

#include <torch/csrc/autograd/engine.h>

#include <troupe/engine/drop_in/libtorch_names.hpp>
#include <troupe/engine/drop_in/substitute.hpp>
#include <troupe/engine/drop_in/symbol_slot.hpp>

namespace troupe {

namespace {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::variable_list;

variable_list run_on_libtorch(Engine& engine, const engine::pass_request& request) {
  return engine.execute(request.roots, request.gradients, request.keep_graph, request.create_graph, request.accumulate_grad,
                        request.inputs);
}

/// Troupe's engine, which install_engine() makes libtorch's default engine. It runs passes with run_substituted(). `libtorch_`,
/// the default engine before, does all other work: anomaly metadata, default hooks, threads.
///   IE-1  after a pass, install_engine() or uninstall_engine(), this engine uses the threads and queues that libtorch has
///         started, if any.
///   IE-2  the constructor starts no thread: a program may fork children until its first pass.
///   IE-3  a function that asks for the buffers of its gradients (get_current_input_grad_buffers) finds none.
class installed_engine final : public Engine {
 public:
  explicit installed_engine(Engine& libtorch) : libtorch_(libtorch) {}

  // Makes this engine and `libtorch_` share their threads and queues. libtorch starts threads once per process, for the first
  // engine that asks. That is `libtorch_`, or this engine if libtorch's distributed autograd asks after install_engine(),
  // because it uses the default engine. Pre: no other thread is starting libtorch's threads.
  void share_started_threads() {
    const std::scoped_lock lock(sharing_);
    auto& theirs = libtorch_.*(&installed_engine::thread_pool_shared_);
    auto& their_queues = libtorch_.*(&installed_engine::device_ready_queues_);
    if (thread_pool_shared_ == nullptr)
      thread_pool_shared_ = theirs;
    else if (theirs == nullptr)
      theirs = thread_pool_shared_;
    if (device_ready_queues_.empty())
      device_ready_queues_ = their_queues;
    else if (their_queues.empty())
      their_queues = device_ready_queues_;
  }

  variable_list execute(const edge_list& roots, const variable_list& gradients, bool keep_graph, bool create_graph,
                        bool accumulate_grad, const edge_list& inputs) override {
    start_threads();
    return engine::run_substituted(libtorch_, run_on_libtorch,
                                   {roots, gradients, keep_graph, create_graph, accumulate_grad, inputs});
  }

  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(const std::shared_ptr<torch::autograd::GraphTask>& task,
                                                                 engine::node_pointer root,
                                                                 torch::autograd::InputBuffer&& buffer) override {
    start_threads();
    return libtorch_.execute_with_graph_task(task, std::move(root), std::move(buffer));
  }

  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return libtorch_.make_anomaly_metadata();
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return libtorch_.get_default_saved_variable_hooks();
  }

#if TROUPE_TORCH_HAS_CREATION_HOOKS
  std::vector<std::unique_ptr<torch::autograd::NodeCreationHook>> get_node_creation_hooks() override {
    return libtorch_.get_node_creation_hooks();
  }
#endif

  void thread_on_exception(const std::shared_ptr<torch::autograd::GraphTask>& task, const engine::node_pointer& function,
                           std::exception& error) override {
    libtorch_.thread_on_exception(task, function, error);
  }

  // Runs on each thread that libtorch starts for this engine (see share_started_threads()). Passes the thread to `libtorch_`,
  // because `libtorch_` may be Python's engine, which gives the thread a Python thread state. Both engines count the thread:
  // the start of this engine waits for the count of this engine, and the end of `libtorch_` waits for the count of `libtorch_`.
  void thread_init(int device, const std::shared_ptr<torch::autograd::ReadyQueue>& queue, bool should_increment) override {
    share_started_threads();  // functions on this thread look for the queues in `libtorch_`
    if (should_increment) increment_non_reentrant_thread_count();
    libtorch_.thread_init(device, queue, should_increment);
    if (should_increment) decrement_non_reentrant_thread_count();
  }

  Engine& libtorch() { return libtorch_; }

 private:
  void start_threads() {
    if (!are_shared_.load(std::memory_order_acquire)) {
      libtorch_.initialize_device_threads_pool();
      share_started_threads();
      are_shared_.store(true, std::memory_order_release);
    }
  }

  Engine& libtorch_;
  std::mutex sharing_;  // held while the threads and queues of one engine are given to the other
  std::atomic<bool> are_shared_{false};
};

std::mutex installing;  // held while one engine takes the place of the other
// Made once, before libtorch gets a stub: so the stubs read it without the mutex. Never destroyed, because passes may run until
// the process ends.
installed_engine* ours = nullptr;

Engine& stub_of_ours() { return *ours; }
Engine& stub_of_libtorch() { return ours->libtorch(); }

#if TROUPE_TORCH_HAS_GRADIENT_BUFFERS
engine::node_pointer running_function() { return engine::current_function(torch::autograd::get_current_node()); }

// Leads libtorch's own calls of get_current_node() here, or back. libtorch gives buffers of gradients to no other function than
// the running one.
void lead_libtorch(bool here) try {
  const engine::symbol_slot slot("libtorch_cpu.so", LIBTORCH_CURRENT);
  void* const now = slot.address();
  Dl_info owner{};
  if (!here && now == reinterpret_cast<void*>(running_function))
    slot.replace(now, reinterpret_cast<void*>(torch::autograd::get_current_node));
  else if (here && dladdr(now, &owner) != 0 && std::string_view(owner.dli_fname).ends_with("/libtorch_cpu.so"))
    slot.replace(now, reinterpret_cast<void*>(running_function));
} catch (const std::runtime_error&) {
  // libtorch was built in another way: a function that asks for buffers gets an error.
}
#else
void lead_libtorch(bool) {}
#endif

}  // namespace

void install_engine() {
  const std::scoped_lock lock(installing);
  if (ours == nullptr) ours = new installed_engine(Engine::get_default_engine());
  ours->share_started_threads();
  lead_libtorch(true);
  torch::autograd::set_default_engine_stub(stub_of_ours);
}

void uninstall_engine() {
  const std::scoped_lock lock(installing);
  if (ours != nullptr && &Engine::get_default_engine() == ours) {
    ours->share_started_threads();
    torch::autograd::set_default_engine_stub(stub_of_libtorch);
    lead_libtorch(false);
  }
}

}  // namespace troupe
