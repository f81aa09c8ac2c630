// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/drop_in/substitute.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <troupe/engine/drop_in/task_state.hpp>
#include <troupe/engine/evaluate.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/running_pass.hpp>
#include <troupe/engine/stream_order.hpp>

namespace troupe::engine {

using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

std::atomic<std::uint64_t> substituted{0};
std::array<std::atomic<std::uint64_t>, left_because_count> left_to_libtorch{};
std::atomic<void (*)(left_because)> left_listener{nullptr};

// Whether libtorch runs functions of this device type on the calling thread.
bool runs_on_cpu(c10::DeviceType type) { return type == at::kCPU || type == at::kMeta || type == at::kLazy; }

bool has_more_than_cpu() {
  for (std::size_t i = 0; i < static_cast<std::size_t>(c10::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES); ++i) {
    if (runs_on_cpu(static_cast<c10::DeviceType>(i))) continue;
    const auto* device = c10::impl::device_guard_impl_registry[i].load();
    if (device != nullptr && device->deviceCount() > 0) return true;
  }
  return false;
}

/// Whether a function is on a device that is neither a CPU nor the accelerator of this process.
bool uses_other_device(const plan& graph) {
  // If the graph is small, a look at the device of each function's inputs takes less time than has_more_than_cpu().
  constexpr std::size_t few = 16;
  if (graph.vertices.size() > few && !has_more_than_cpu()) return false;
  std::optional<c10::DeviceType> accelerator;
  bool asked = false;
  const auto is_other = [&](c10::DeviceType type) {
    if (runs_on_cpu(type)) return false;
    if (!std::exchange(asked, true)) accelerator = type_with_stream_order();
    return accelerator != type;
  };
  return std::any_of(graph.vertices.begin(), graph.vertices.end(), [&](const plan::vertex& each) {
    for (std::uint32_t i = 0; i < each.slot_count; ++i) {
      const auto& input = each.function->input_metadata(i);
      if (!input.was_default_constructed() && is_other(input.device().type())) return true;
    }
    return false;
  });
}

/// Sets a pointer, and sets it to null at the end of the scope.
template <class Value>
class scoped_value {
 public:
  scoped_value(Value*& variable, Value* value) : variable_(variable) { variable = value; }
  ~scoped_value() { variable_ = nullptr; }
  scoped_value(const scoped_value&) = delete;
  scoped_value& operator=(const scoped_value&) = delete;

 private:
  Value*& variable_;
};

/// One pass on troupe's engine. run() is called inside a private function (private_root), which libtorch's engine runs.
struct inner_pass {
  explicit inner_pass(const pass_request& request) : request(request) {}

  void run() {
    left.reset();
    graph_task_settings settings;
    settings.roots = request.roots;
    settings.root_gradients = request.gradients;
    settings.inputs = request.inputs;
    settings.capture = !request.accumulate_grad;
    settings.keep_graph = request.keep_graph;
    settings.create_graph = request.create_graph;
    settings.one_thread = true;
    settings.in_libtorch_task = true;
    graph_task task = started(std::move(settings));
    if (uses_other_device(task.graph())) {
      left = left_because::other_device;
      return;
    }
    publish(task.graph(), !request.inputs.empty(), request.create_graph);
    const scoped_value now(running, &task);
    task.run();
    withdraw_functions();
    captures = task.take_captures();
  }

  // Makes the graph task. If the gradients of the roots do not fit, the error has libtorch's text.
  graph_task started(graph_task_settings&& settings) const {
    try {
      return graph_task(std::move(settings));
    } catch (const c10::Error&) {
      variable_list gradients = request.gradients;
      validate(request.roots, gradients, [](const std::string& reason) { return reason; });
      throw;
    }
  }

  const pass_request& request;
  running_pass* const outer = running_pass::innermost();
  surroundings* const around = surroundings::current;
  variable_list captures;
  graph_task* running = nullptr;
  std::exception_ptr foreign;  // an exception that is no std::exception
  // Why libtorch's engine has to run the pass, if so. Compiled autograd never calls the private function.
  std::optional<left_because> left = left_because::compiled_autograd;
};

/// Thrown in place of an exception that libtorch's engine would not pass on unchanged.
struct foreign_exception final : std::exception {
  const char* what() const noexcept override { return "an exception that is no std::exception was thrown in a backward pass"; }
};

/// The private function: the only function that libtorch's engine runs. The constructor gives the sequence number, so the
/// thread's counter of sequence numbers does not advance.
struct private_root final : Node {
  explicit private_root(const at::Tensor& gradient) : Node(std::numeric_limits<std::uint64_t>::max()) {
    add_input_metadata(gradient);
  }

  std::string name() const override { return "troupe::pass"; }

  variable_list apply(variable_list&&) override {
    try {
      const same_passes here(pass->outer, pass->around);
      pass->run();
    } catch (const std::exception&) {
      throw;  // libtorch keeps the exception; Python's engine adds Python's error state
    } catch (...) {
      pass->foreign = std::current_exception();
      throw foreign_exception();
    }
    return {};
  }

  inner_pass* pass = nullptr;
};

/// The graph that libtorch's engine runs for one pass: a `private_root` as the only root, and a gradient for that root.
struct private_graph {
  private_graph() : gradients{scalar()}, root(make_node<private_root>(gradients[0])) { edges.emplace_back(root, 0); }

  // Made without the dispatcher, because the pass may run under a mode that traces or replaces operators.
  static at::Tensor scalar() { return at::Tensor(at::detail::empty_cpu({}, at::kFloat, false, std::nullopt)); }

  bool in_use() const { return root.use_count() > 2; }

  variable_list gradients;
  decltype(make_node<private_root>(at::Tensor())) root;
  edge_list edges;
};

/// A private graph for one pass: the spare graph of the thread, or a new graph if a pass around this pass uses the spare graph.
class private_graph_lease {
 public:
  explicit private_graph_lease(inner_pass& pass) : graph_(spare ? std::move(spare) : std::make_unique<private_graph>()) {
    graph_->root->pass = &pass;
  }

  ~private_graph_lease() {
    graph_->root->pass = nullptr;
    if (!graph_->in_use())  // another thread of libtorch may still refer to the graph of a nested pass
      spare = std::move(graph_);
  }

  const private_graph* operator->() const { return graph_.get(); }

 private:
  static thread_local std::unique_ptr<private_graph> spare;
  std::unique_ptr<private_graph> graph_;
};

thread_local std::unique_ptr<private_graph> private_graph_lease::spare;

// Returns the graph task that runs in the private function `libtorchs`; null if this is another function.
graph_task* task_of(const node_pointer& libtorchs) {
  const auto* root = dynamic_cast<const private_root*>(libtorchs.get());
  return root == nullptr || root->pass == nullptr ? nullptr : root->pass->running;
}

// Whether the pass has only one function. Such a pass gains nothing from troupe's engine, because libtorch runs a pass of one
// function around each pass of troupe's engine.
bool is_single_function(const edge_list& roots) {
  const auto& edges = roots.front().function->next_edges();
  return roots.size() == 1 && std::none_of(edges.begin(), edges.end(), [](const auto& edge) { return edge.is_valid(); });
}

std::optional<left_because> reason_to_leave(const pass_request& request) {
  const auto& roots = request.roots;
  if (roots.empty() || roots.size() != request.gradients.size() || (!request.accumulate_grad && request.inputs.empty()) ||
      std::any_of(roots.begin(), roots.end(), [](const auto& root) { return !root.is_valid(); })) {
    return left_because::refused;
  }
  if (torch::autograd::AnomalyMode::is_enabled()) return left_because::anomaly_mode;
  if (is_single_function(roots)) return left_because::single_function;
  return std::nullopt;
}

}  // namespace

variable_list run_substituted(torch::autograd::Engine& engine, libtorch_pass libtorch, const pass_request& request) {
  if (const auto* outer = running_pass::innermost())
    TORCH_CHECK(
      !outer->has_open_sums(),
      "Calling backward or grad reentrantly after accessing a non-None ctx.input_grad_buffers entry is not supported");
  if (const auto reason = reason_to_leave(request)) {
    count_left(*reason);
    return libtorch(engine, request);
  }
  substituted.fetch_add(1, std::memory_order_relaxed);
  inner_pass pass(request);
  const private_graph_lease graph(pass);
  // Checkpointing asks libtorch whether the running pass runs its whole graph. libtorch answers no for a pass with inputs. So
  // the private pass gets inputs if this pass has inputs.
  const edge_list inputs = request.inputs.empty() ? edge_list() : graph->edges;
  // If create_graph is on, libtorch warns about graphs in `.grad`. Only a pass that accumulates gradients writes `.grad`. In
  // all other passes create_graph is off here, and publish() sets the grad mode.
  const bool create_graph = request.create_graph && request.accumulate_grad;
  try {
    libtorch(engine, {graph->edges, graph->gradients, request.keep_graph, create_graph, true, inputs});
  } catch (...) {
    if (pass.foreign) std::rethrow_exception(pass.foreign);
    if (!pass.left) throw;
  }
  if (pass.left) {
    substituted.fetch_sub(1, std::memory_order_relaxed);
    count_left(*pass.left);
    return libtorch(engine, request);
  }
  return std::move(pass.captures);
}

node_pointer current_function(node_pointer libtorchs) {
  const graph_task* const task = task_of(libtorchs);
  if (task == nullptr) return libtorchs;
  Node* const function = task->running();
  return function == nullptr ? nullptr : function->getptr();
}

variable_list gradient_buffers(const node_pointer& libtorchs, variable_list libtorchs_buffers) {
  graph_task* const task = task_of(libtorchs);
  if (task != nullptr) libtorchs_buffers = task->open_sums();
  return libtorchs_buffers;
}

pass_counts passes_so_far() noexcept {
  pass_counts result{substituted.load(), 0, {}};
  for (std::size_t i = 0; i < left_because_count; ++i) result.libtorch += result.because[i] = left_to_libtorch[i].load();
  return result;
}

void count_left(left_because reason) {
  left_to_libtorch[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  if (const auto listener = left_listener.load(std::memory_order_acquire)) listener(reason);
}

void listen_to_left(void (*listener)(left_because)) noexcept { left_listener.store(listener, std::memory_order_release); }

}  // namespace troupe::engine
