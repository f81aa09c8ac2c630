// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/engine/workspace_test.cpp, tests/engine/reach_walk_test.cpp
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ThreadLocalState.h>
#include <ATen/core/Tensor.h>

#include <troupe/engine/evaluate.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/guest.hpp>
#include <troupe/engine/plan.hpp>
#include <troupe/engine/ready_queue.hpp>
#include <troupe/engine/recordings.hpp>
#include <troupe/engine/running_pass.hpp>
#include <troupe/engine/serial_order.hpp>
#include <troupe/engine/stream_order.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe::engine {

/// Finds the recvs to which given vertices lead, without recursion. An object visits each vertex at most once, over all its
/// calls.
class reach_walk {
 public:
  /// `of`: the guest of the graph task, if it has one.
  explicit reach_walk(const guest* of = nullptr) : guest_(of) {}

  /// Returns the messages of the recvs that this call has found and no earlier call. `from` may contain plan::none.
  std::vector<message_id> operator()(const plan& graph, std::vector<std::uint32_t> from);

  /// True if a walk has run, and no walk has visited the vertex.
  bool has_passed_by(std::uint32_t vertex) const { return !visited_.empty() && !visited_[vertex]; }

 private:
  const guest* guest_;
  std::vector<bool> visited_;
};

/// The members of a graph task that grow with its graph. Each thread keeps the last workspace for its next task, unless the
/// workspace is large. Short passes would otherwise spend most of their time in the allocator.
struct workspace {
  /// Returns an empty workspace. It has the memory that an earlier task of this thread gave back, if any.
  static std::unique_ptr<workspace> acquire();

  /// Frees the tensors and keeps the memory for the next task of this thread.
  static void give_back(std::unique_ptr<workspace> used) noexcept;

  plan graph;
  std::vector<at::Tensor> slots;  // inputs of all functions
  ready_queue ready;
  std::vector<at::Tensor> inputs;  // inputs of the function that runs
};

class job_board;
class lane;
class thread_state_keeper;
struct job;

/// The private members of a graph task. graph_task.cpp, deliver.cpp and run_beside.cpp define its functions.
struct graph_task::implementation {
  enum class delivery : std::uint8_t { waiting, delivered, dropped };

  explicit implementation(graph_task_settings&& given)
      : settings(std::move(given)),
        captures(settings.capture ? settings.inputs.size() : 0),
        deliveries(settings.sends.size(), delivery::waiting),
        delivered(settings.sends.size()),
        evaluate{settings.keep_graph, !settings.inputs.empty(), settings.leaves, settings.leaves_mutex, settings.of_guest},
        waiting(settings.sends.size()),
        seeded(settings.roots.empty()) {
    if (!settings.recordings.empty()) order.emplace(std::move(settings.recordings));
    graph.build(settings.roots, settings.sends, settings.inputs, settings.capture, order ? &*order : nullptr);
    slots.resize(graph.slot_count);
    streams = make_stream_order(graph);
    validate(settings.roots, settings.root_gradients,
             [](const std::string& reason) { return "troupe: the gradient of a root is an " + reason; });
    if (!settings.sends.empty()) sums.emplace(graph);
    asks_libtorch = notes.asks_libtorch = settings.emit_to != nullptr && may_ask_libtorch();
    if (settings.recorder != nullptr && settings.create_graph && order) note_producers();
    if (!settings.one_thread) {
      home = std::this_thread::get_id();
      home_state = std::make_unique<at::ThreadLocalState>();
    }
  }

  ~implementation() { workspace::give_back(std::move(space)); }
  // Each thread keeps the memory of one task for its next task, as with the workspace.
  static void* operator new(std::size_t size);
  static void operator delete(void* memory) noexcept;
  implementation(const implementation&) = delete;
  implementation& operator=(const implementation&) = delete;

  void push(std::uint32_t index) {
    if (made_ready != nullptr)
      made_ready->push_back(index);
    else
      ready.push({graph.vertices[index].sequence, graph.vertices[index].rank, index});
  }

  void seed();
  void show_to_hooks_of_lone_root();
  void run_here(const std::atomic<bool>* stop);
  bool needs_libtorch_task() const;
  bool may_ask_libtorch() const;
  static bool runs_code_of_user(const plan::vertex& each);
  void run_shown(const std::atomic<bool>* stop);
  void run_in_order(const std::atomic<bool>* stop);
  void run_ready(const std::atomic<bool>* stop);
  void check_all_ran();
  void run_callbacks();
  void run_serially(const std::atomic<bool>* stop, bool watched);
  bool stopped(const std::atomic<bool>* stop);
  bool prepare(std::uint32_t index);
  void step(std::uint32_t index);
  void step_watched(std::uint32_t index);
  void step_on_stream(std::uint32_t index);
  void step_recorded(std::uint32_t index, bool watched);
  void note_producers();
  program_place place_while_running(std::uint32_t index) const;
  void give_leaf_to_caller(torch::autograd::Node& function);
  template <bool Ordered>
  void add_on_stream(plan::vertex& next, std::uint32_t edge, std::uint32_t slot, at::Tensor&& value);
  void take_inputs(const plan::vertex& vertex);
  void capture(std::uint32_t index);
  void call_capture_hooks(std::size_t output);
  template <bool Ordered>
  void distribute(const plan::vertex& from, torch::autograd::variable_list& outputs);
  void distribute_in_order(const plan::vertex& from, torch::autograd::variable_list& outputs);

  // Defined in deliver.cpp.
  void skip(std::vector<std::uint32_t> unused);
  const recv_backward* as_recv(const plan::vertex& vertex) const;
  bool tells_of_no_gradient(std::uint32_t index) const;
  bool run_unreached(const plan::vertex& vertex);
  bool is_reached(std::uint32_t slot);

  // Defined in run_beside.cpp, for a pass with workers.
  std::size_t run_until_large(const std::atomic<bool>* stop);
  void run_beside(const std::atomic<bool>* stop);
  void share(job_board& board, warning_relay& warnings, const std::atomic<bool>* stop);
  void go_on(job_board& board);
  bool hand_over(job_board& board, std::uint32_t index);
  lane* lane_for(std::uint32_t index) const;
  job taken_job(std::uint32_t index);
  void run_small(std::uint32_t index);
  void run_alone(job& next) noexcept;
  void run_job(job& next) const;
  void evaluate_job(job& next) const;
  void count_large(const job& done);
  void hand_on(job& done);
  void hand_outputs_on(job& done);

  void abandon() noexcept;
  void fail(std::uint32_t index);

  std::unique_ptr<workspace> space = workspace::acquire();
  plan& graph = space->graph;
  std::vector<at::Tensor>& slots = space->slots;
  ready_queue& ready = space->ready;
  std::vector<at::Tensor>& inputs = space->inputs;

  graph_task_settings settings;
  std::optional<recording_order> order;
  std::vector<std::uint32_t> producers;      // by edge: the vertex that the edge starts from. Empty if nothing is recorded
  std::vector<std::uint32_t> last_producer;  // by vertex: the function that runs last of those that give the vertex gradients
  std::optional<serial_sums> sums;
  std::unique_ptr<stream_order> streams;  // null: all functions run on the CPU
  std::vector<at::Tensor> captures;
  std::vector<delivery> deliveries;
  std::vector<torch::autograd::variable_list> delivered;
  evaluation evaluate;
  std::size_t large_functions = 0;
  bool is_away = false;  // whether the thread of the pass runs a function without owning the pass (job_board.hpp)
  std::vector<std::uint32_t>* made_ready = nullptr;  // if set, gets the functions that become ready, instead of `ready`
  std::size_t waiting;
  std::uint64_t begun = 0;
  bool seeded;
  bool asks_libtorch = false;
  bool abandoned = false;
  std::uint32_t running = plan::none;
  thread_state_keeper* thread_state = nullptr;  // null outside run()
  pass_notes notes;
  std::string failed;
  std::string trace;
  std::string calls;
  reach_walk reach{evaluate.of_guest};
  std::vector<bool> with_edges;  // by slot: whether a function or root leads to the slot; filled for the first recv
  std::thread::id home;
  std::unique_ptr<at::ThreadLocalState> home_state;  // null with settings.one_thread, because a copy takes long
};

}  // namespace troupe::engine
