// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer_shards.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <numeric>
#include <utility>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/engine/gradient_table.hpp>

namespace troupe {

void optimizer_shards::group::add(const call_reply& made) {
  const object_id id{where.id(), calls::number_from(made.values, "object")};
  object = std::make_shared<remote_object>(where.with_devices({}), id);  // no device map: norms and bytes of checkpoints stay
                                                                         // on the CPU
  counts = get<std::vector<std::size_t>>(made.values, "counts");
  if (counts.size() < modules.size())
    throw error(errc::malformed_message, "optimizer: node '" + where.name() + "' has answered for " +
                                           std::to_string(counts.size()) + " of " + std::to_string(modules.size()) +
                                           " modules");
  counts.resize(modules.size());  // drops the count of local parameters, which another node does not have
}

optimizer_shards::optimizer_shards(node& here, const optimizer_settings& settings, const std::vector<parameter_group>& groups,
                                   named_tensors local_buffers)
    : here_(here.self()) {
  if (groups.empty()) throw error(errc::misuse, "optimizer: there is no parameter group; give at least one");
  std::vector<std::size_t> group_of;  // the parameter group of each module
  objects::grouping own_groups{{}, {}, {}};
  named_tensors local;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    modules_.insert(modules_.end(), groups[g].modules.begin(), groups[g].modules.end());
    group_of.resize(modules_.size(), g);
    local.insert(local.end(), groups[g].local.begin(), groups[g].local.end());
    own_groups.of_local.resize(local.size(), g);
    options_.push_back(groups[g].options);
  }
  own_groups.options = options_;
  std::vector<std::shared_ptr<module>> own;
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const auto& where = modules_[i].where();
    if (where.id() == here_.id()) {
      mine_.push_back(i);
      own.push_back(here.objects().find_module(modules_[i].id()));
      own_groups.of_modules.push_back(group_of[i]);
      continue;
    }
    auto found = std::find_if(groups_.begin(), groups_.end(), [&](const group& one) { return one.where.id() == where.id(); });
    if (found == groups_.end()) found = groups_.insert(groups_.end(), group{where, {}, nullptr, {}});
    found->modules.push_back(i);
  }
  // This node makes its shard first, so that wrong settings are refused before another node makes anything.
  local_ = std::make_unique<objects::local_optimizer>(settings, std::move(own), local, std::move(local_buffers), own_groups);
  std::string text = "'" + settings.type + "' of nodes ";
  std::string names_text;
  for (const auto& name : names()) support::add_quoted(names_text, name);
  description_ = std::make_shared<const std::string>(text + names_text);

  if (!groups_.empty()) detail::continuation_scope::refuse_to_wait();
  std::vector<future<call_reply>> replies;
  for (const auto& one : groups_) {
    requests::create_optimizer what{here_.id(), settings.type, settings.values, {}};
    for (const auto& options : options_) what.groups.push_back({what.groups.size() + 1, {}, options});
    for (const auto i : one.modules) what.groups[group_of[i]].modules.push_back(modules_[i].id().number);
    replies.push_back(node_access::ask(one.where, std::move(what)));
  }
  // The constructor waits for all replies even if one call fails. So every object that a node made has a handle here, and the
  // object is dropped with that handle.
  std::exception_ptr failure;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    try {
      groups_[g].add(replies[g].get());
    } catch (const std::exception&) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

const peer& optimizer_shards::here() const {
  if (!nodes::visit(link_of(here_))) throw link_of(here_).has_ended();
  return here_;
}

bool optimizer_shards::has_local() const {
  const auto& counts = local_->counts();
  return std::any_of(counts.begin(), counts.end(), [](std::size_t n) { return n > 0; }) || !local_->buffers().empty();
}

std::set<std::string> optimizer_shards::names() const {
  std::set<std::string> result{here_.name()};
  for (const auto& one : groups_) result.insert(one.where.name());
  return result;
}

void optimizer_shards::expect_to_ask() const {
  here();
  if (!groups_.empty()) detail::continuation_scope::refuse_to_wait();
}

optimizer_shards::answers optimizer_shards::ask(const std::set<std::size_t>& but_not, const request_for& what,
                                                const std::function<void()>& meanwhile) {
  expect_to_ask();  // otherwise `meanwhile` alone might run, and change only the shard of this node
  answers all{std::vector<std::optional<call_reply>>(groups_.size()), false, nullptr};
  std::vector<std::optional<future<call_reply>>> futures(groups_.size());
  const auto attempt = [&](auto&& run) {
    try {
      run();
    } catch (...) {
      if (!all.failure) all.failure = std::current_exception();
    }
  };
  attempt([&] {
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (!but_not.contains(g)) futures[g] = groups_[g].object->ask(what(groups_[g]));
    meanwhile();
    all.here = true;
  });
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (futures[g]) attempt([&] { all.replies[g] = futures[g]->get(); });
  return all;
}

std::vector<call_reply> optimizer_shards::everywhere(const request_for& what, const std::function<void()>& meanwhile) {
  auto all = ask({}, what, meanwhile);
  if (all.failure) std::rethrow_exception(all.failure);
  std::vector<call_reply> replies;
  for (auto& each : all.replies) replies.push_back(std::move(*each));
  return replies;
}

void optimizer_shards::spread(module_sums& to, const std::vector<std::size_t>& indices, const std::vector<std::size_t>& counts,
                              const double* sums) const {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    // The last sums are those of the local parameters.
    to[i < indices.size() ? indices[i] : modules_.size()].assign(sums, sums + counts[i]);
    sums += counts[i];
  }
}

double optimizer_shards::norm(const engine::gradient_table* gradients) {
  objects::squared_norms own;
  const auto replies = everywhere(requests::norm{gradients == nullptr}, [&] { own = local_->norms(gradients); });
  const auto check = [](const std::string& parameter, const std::string& name) {
    if (!parameter.empty())
      throw error(errc::invalid_gradient, "the gradient of parameter '" + parameter + "' on node '" + name +
                                            "' is not finite; no parameter was stepped. Lower the learning rate or look for a "
                                            "division by zero");
  };
  module_sums sums(modules_.size() + 1);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    check(get<std::string>(replies[g].values, "not_finite"), groups_[g].where.name());
    const auto tensor = replies[g].tensor(0);
    const auto& counts = groups_[g].counts;
    const auto expected = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    if (tensor.scalar_type() != at::kDouble || static_cast<std::size_t>(tensor.numel()) != expected)
      throw error(errc::malformed_message, "node '" + groups_[g].where.name() + "' sent " + std::to_string(tensor.numel()) +
                                             " norms, expected " + std::to_string(expected) + " of type Double");
    spread(sums, groups_[g].modules, counts, tensor.contiguous().const_data_ptr<double>());
  }
  check(own.not_finite, here_.name());
  spread(sums, mine_, local_->counts(), own.sums.data());
  double total = 0;
  for (const auto& one : sums)
    for (const double sum : one) total += sum;
  return std::sqrt(total);
}

}  // namespace troupe
