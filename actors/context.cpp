// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/context.hpp>

#include <atomic>
#include <utility>

#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/variable.h>
#include <caf/send.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/passes/burst.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/pass_start.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/inner_time.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe {

namespace {

constexpr std::chrono::seconds gather_deadline{60};

template <class... Ts>
[[noreturn]] void refuse(const Ts&... text) {
  classic_ostringstream out;
  (out << ... << text);
  throw error(errc::misuse, out.str());
}

/// The gradient of root `index`: the given gradient, or 1 for a scalar root without a given gradient. Throws troupe::error
/// (misuse) if the gradient does not fit the root.
at::Tensor root_gradient(const at::Tensor& root, std::size_t index, const std::vector<at::Tensor>& given) {
  if (!root.defined()) refuse("backward: root ", index, " is undefined; give a tensor that requires grad");
  if (!root.requires_grad())
    refuse("backward: root ", index, " of shape ", root.sizes(),
           " does not require grad: nothing leads from it to a parameter");
  const auto dtype = root.scalar_type();
  if (given.empty() || !given[index].defined()) {
    if (root.numel() != 1)
      refuse("backward: root ", index, " has shape ", root.sizes(),
             "; give its gradient (backward_options::gradients), or a root of one element");
    if (root.is_complex())
      refuse("backward: root ", index, " is ", dtype,
             "; give its gradient (backward_options::gradients), or a root that is real");
    return at::ones_like(root);
  }
  if (given[index].is_complex() != root.is_complex())
    refuse("backward: root ", index, " is ", dtype, ", its gradient ", given[index].scalar_type(),
           "; either both are complex or none is");
  if (given[index].sizes() != root.sizes())
    refuse("backward: the gradient of root ", index, " has shape ", given[index].sizes(), ", expected ", root.sizes());
  return given[index];
}

/// The open context with this id. Throws troupe::error (stopping) once the node has begun to end.
passes::open_context found(nodes::node_link& link, const context_id& id) {
  auto result = nodes::visit(link)->services().contexts.find(id);
  if (!result.record) throw link.has_ended();
  return result;
}

}  // namespace

context::context(node& here, wire_format format) : here_(runtime_of(here).link()) {
  if (auto open = support::call_scope::context(); open && !support::call_scope::runs_pass())
    refuse("a context is open on this thread already (", to_string(open), "): leave its scope first, contexts do not nest");
  id_ = nodes::visit(*here_)->services().contexts.open().record->id();
  scope_ = std::make_unique<support::call_scope>(here.id(), id_, program_place{}, std::string(), std::nullopt, format);
}

context::~context() {
  if (!scope_->is_of_this_thread()) support::call_scope::leave_behind(std::move(scope_));
  scope_.reset();
  if (const nodes::visit inside(*here_); inside) inside->services().contexts.close(id_);
}

struct context::branch::state {
  std::shared_ptr<nodes::node_link> here;
  contracts::context_record_ptr record;
  program_place place;
  std::string calls;
  support::call_bounds bounds;
  wire_format format;
  std::atomic<bool> is_open{false};
};

context::branch::branch(node& here) {
  const auto id = current();
  if (!id)
    refuse("context::branch: no context is open on this thread; make the branch where it is, and give it to the other thread");
  runtime_of(here).check_running();
  using scope = support::call_scope;
  if (const auto expected = scope::here(); expected != here.id())
    refuse("context::branch: ", to_string(id), " is open for node '", here.name_of(expected), "' on this thread, got node '",
           here.name(), "'; give the node whose program or function runs here");
  auto record = services_of(here).contexts.find(id).record;
  if (!record) throw services_of(here).contexts.unknown(id);
  state_.reset(new state{runtime_of(here).link(), std::move(record), scope::next_place(), scope::calls(),
                         scope::current_bounds(), scope::format()});
}

context::scope::scope(const branch& of) : branch_(of.state_) {
  if (branch_->is_open.exchange(true))
    refuse("context::scope: this branch was opened before; make a branch for each part of the work");
  const auto id = branch_->record->id();
  auto opened = std::make_unique<support::call_scope>(branch_->here->id(), id, branch_->place, branch_->calls, branch_->bounds,
                                                      branch_->format);
  const bool is_open = nodes::visit(*branch_->here)->services().contexts.find(id).record != nullptr;
  if (!is_open || !branch_->record->add({}, {}, {opened->recording()}))
    throw error(errc::unknown_context, "context::scope: the context " + to_string(id) + " was released");
  scope_ = std::move(opened);
}

context::scope::~scope() {
  if (scope_->is_of_this_thread())
    branch_->record->end_recording(scope_->recording());
  else
    support::call_scope::leave_behind(std::move(scope_));
}

context_id context::current() noexcept { return support::call_scope::context(); }

future<done> context::backward(std::vector<at::Tensor> roots, backward_options options) {
  if (roots.empty()) refuse("backward: no roots were given; give at least one tensor that requires grad");
  const auto gradients = std::move(options.gradients);
  if (!gradients.empty() && gradients.size() != roots.size())
    refuse("backward: ", gradients.size(), " gradients were given for ", roots.size(), " roots; give one for each, or none");
  const nodes::visit inside(*here_);
  const auto self = inside ? inside->services().contexts.find(id_) : passes::open_context();
  if (!self.record) return future<done>::failed(here_->has_ended());
  auto job = std::make_shared<contracts::backward_job>();
  for (std::size_t i = 0; i < roots.size(); ++i) {
    job->gradients.push_back(root_gradient(roots[i], i, gradients));
    job->roots.push_back(torch::autograd::impl::gradient_edge(roots[i]));
  }
  job->keep_graph = options.keep_graph || options.create_graph;
  job->create_graph = options.create_graph;
  job->place = current() == id_ ? support::call_scope::next_place() : scope_->next();
  job->recorded = engine::recording_from_now({});
  job->recorded.from = 0;  // from 0: everything that this thread has recorded
  if (!scope_->is_of_this_thread()) {
    auto of_owner = scope_->recording();
    of_owner.from = 0;
    self.record->add({}, {}, {std::move(of_owner)});
  }
  job->fast = options.mode == pass_mode::fast;
  job->deadline = support::within_bounds(options.deadline.value_or(inside->services().options.deadline));
  auto result = job->result;
  passes::start_pass(inside->services(), self.record, self.actor, job);
  return result;
}

namespace {

std::shared_ptr<const engine::gradient_table> of_completed_passes(const contracts::context_actor& context) {
  auto wish = std::make_shared<contracts::gradients_wish>();
  const auto all = wish->result;
  caf::anon_send(context, std::move(wish));
  try {
    const auto result = all.get(support::within_bounds(gather_deadline));
    return result ? result : std::make_shared<const engine::gradient_table>();
  } catch (const error& reason) {
    throw error(reason.code(), std::string("the context's gradients: ") + reason.what());
  }
}

}  // namespace

std::shared_ptr<const engine::gradient_table> context::gradients() const {
  const auto completed = of_completed_passes(found(*here_, id_).actor);
  auto running = passes::gathered_by_burst(id_);
  if (running.empty()) return completed;
  auto both = std::make_shared<engine::gradient_table>(*completed);
  both->merge(std::move(running));
  return both;
}

bool context::running() const { return found(*here_, id_).record->passes().is_running(); }

bool context::has_completed_pass() const { return found(*here_, id_).record->passes().completed != pass_number{}; }

at::Tensor context::gradient(const at::Tensor& leaf) const {
  auto before = of_completed_passes(found(*here_, id_).actor)->find(leaf);
  auto now = passes::gathered_by_burst(id_, leaf);
  if (!before.defined() || !now.defined()) return before.defined() ? before : now;
  engine::gradient_table both;
  both.accumulate(leaf, std::move(before));
  both.accumulate(leaf, std::move(now));
  return both.find(leaf);
}

}  // namespace troupe
