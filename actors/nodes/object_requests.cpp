// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/remote_module_test.cpp, tests/actors/optimizer_test.cpp
#include <troupe/actors/nodes/serve_request.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/nodes/node_services.hpp>
#include <troupe/actors/objects/loaded_script.hpp>
#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/actors/objects/module_selection.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/objects/overwritable.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe::nodes {

namespace {

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  classic_ostringstream text;
  text << tensor.sizes() << " " << tensor.scalar_type();
  return text.str();
}

const engine::gradient_table& gradients_of(const call_arguments& arguments) {
  if (!arguments.context) throw error(errc::misuse, "gradients are gathered in a context, and this call came outside any");
  return *arguments.gradients;
}

void refuse_if_down(node_services& here, node_id who) {
  const auto& known = here.directory;
  if (known.is_down(who)) throw error(errc::peer_down, "node '" + known.name(who) + "' went down before its object was there");
}

void refuse_if_late() {
  const auto until = support::call_scope::current_bounds().until_ns;
  if (until != 0 && support::steady_ns() > until)
    throw error(errc::deadline_passed, "the caller has given up before its object was there");
}

/// Adds the object to the store for its owner. Refuses an owner that went down while its call waited, and one that waits no
/// longer: that owner would never drop the object.
template <class... Object>
object_id give(node_services& here, node_id owner, Object... object) {
  const auto id = here.objects.add(owner, std::move(object)...);
  try {
    refuse_if_down(here, owner);
    refuse_if_late();
  } catch (...) {
    here.objects.drop(id, owner);
    throw;
  }
  return id;
}

call_reply reply_of(object_id made) { return {{}, {{"object", calls::to_attribute(made.number)}}}; }

call_reply serve(node_services& here, call_arguments& arguments, const requests::function& what) {
  // A request of a type that this version does not know is read as a requests::function without a name.
  if (what.name.empty())
    throw error(
      errc::unknown_function,
      "the call names no function, or asks for what this version of troupe does not know; run one release on all nodes");
  return here.functions.find(what.name)(arguments);
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::method& what) {
  return here.objects.find_module(arguments.target)->call(what.name, arguments);
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::parameter& what) {
  const auto found = objects::find_parameter(*here.objects.find_module(arguments.target), what.name);
  if (arguments.context) return {{found}};
  at::NoGradGuard no_grad;
  return {{found.detach().clone()}};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::create_module& what) {
  return reply_of(give(here, what.owner, here.objects.make_module(what.type, arguments.values), what.type));
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::create_script& what) {
  // The policy has checked only direct calls of peers. If a call of a peer makes this node call itself, the policy was not
  // asked.
  const bool is_let_in = here.network.peers.policy != nullptr && arguments.caller != here.self.id();
  const bool may = here.options.allow_scripts || is_let_in;
  if (!arguments.from_itself && !may)
    throw support::refused_request(
      "TorchScript is code, and this node runs no code of other nodes; start the node with --allow-scripts "
      "(settings::allow_scripts) if it may run theirs");
  auto script = objects::load_script(arguments.tensor(0));
  return reply_of(give(here, what.owner, std::move(script), std::string(objects::object_store::script_type)));
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::drop& what) {
  if (arguments.target) here.objects.drop(arguments.target, what.owner);
  return {};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::lend& what) {
  refuse_if_down(here, what.to);
  return {{}, {{"ticket", calls::to_attribute(here.objects.lend(arguments.target, what.owner, what.to))}}};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::take& what) {
  here.objects.accept_loan(arguments.target, what.ticket, what.owner);
  return {};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::select& what) {
  auto selection = std::make_shared<objects::module_selection>(here.objects.find_module(arguments.target), what.names);
  auto type = here.objects.type_of(arguments.target);
  return reply_of(give(here, what.owner, std::shared_ptr<module>(std::move(selection)), std::move(type)));
}

/// A reply with copies of the tensors, because the originals may change while the reply is written.
call_reply copies_of(const named_tensors& all) {
  at::NoGradGuard no_grad;
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : all) {
    names.push_back(name);
    tensors.push_back(tensor.defined() ? tensor.detach().clone() : tensor);
  }
  return {std::move(tensors), {{"names", std::move(names)}}};
}

struct overwritable_tensor {
  std::string kind;
  std::string name;
  at::Tensor tensor;
};

std::vector<overwritable_tensor> parameters_of(module& of) {
  std::vector<overwritable_tensor> all;
  for (auto& [name, tensor] : of.parameters()) all.push_back({"parameter", name, tensor});
  return all;
}

std::vector<overwritable_tensor> buffers_of(module& of) {
  std::vector<overwritable_tensor> all;
  for (auto& [name, tensor] : of.buffers())
    if (tensor.defined()) all.push_back({"buffer", name, tensor});
  return all;
}

/// The parameters of the module, then its buffers. Throws if a buffer has the name of a parameter.
std::vector<overwritable_tensor> state_of(module& of) {
  auto all = parameters_of(of);
  for (auto& buffer : buffers_of(of)) {
    if (std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.name == buffer.name; }))
      throw error(errc::misuse, "the module's state has '" + buffer.name + "' twice; use parameters() and buffers()");
    all.push_back(std::move(buffer));
  }
  return all;
}

named_tensors tensors_of(module& of, const call_arguments& arguments, requests::tensors which) {
  named_tensors all;
  switch (which) {
    case requests::tensors::parameters:
      return of.parameters();
    case requests::tensors::buffers:
      return of.buffers();
    case requests::tensors::state:
      for (auto& each : state_of(of)) all.emplace_back(each.name, each.tensor);
      return all;
    case requests::tensors::gradients:
      break;
  }
  const auto& table = gradients_of(arguments);
  all = of.parameters();
  for (auto& [name, tensor] : all) tensor = table.find(tensor);
  return all;
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::read& what) {
  return copies_of(tensors_of(*here.objects.find_module(arguments.target), arguments, what.of));
}

/// The tensors that a request may overwrite, and the noun for such a tensor in errors.
std::pair<std::vector<overwritable_tensor>, const char*> targets_of(module& of, requests::tensors which) {
  if (which == requests::tensors::buffers) return {buffers_of(of), "buffer"};
  if (which == requests::tensors::state) return {state_of(of), "parameter or buffer"};
  // Buffers are allowed too, because set_parameters() accepts a whole state (RM-3).
  auto all = parameters_of(of);
  for (auto& buffer : buffers_of(of)) all.push_back(std::move(buffer));
  return {std::move(all), "parameter"};
}

/// For a request that changes an object: see object_store::begin_change().
objects::object_store::change_lock begin_change(node_services& here, const call_arguments& arguments, const auto& what) {
  return here.objects.begin_change(arguments.target, arguments.caller, what.change, what.first_change);
}

/// Overwrites the tensors that the request names. If a value does not fit, no tensor is overwritten. A request for the state
/// has to name all parameters and buffers.
call_reply serve(node_services& here, call_arguments& arguments, const requests::write& what) {
  const auto found = here.objects.find_module(arguments.target);
  const auto [there, kind] = targets_of(*found, what.of);
  std::vector<std::pair<const overwritable_tensor*, at::Tensor>> copies;  // to, from
  for (std::size_t i = 0; i < what.names.size(); ++i) {
    const auto value = arguments.tensor(i);
    const auto& name = what.names[i];
    const auto to = std::find_if(there.begin(), there.end(), [&](const auto& each) { return each.name == name; });
    if (to == there.end() || !to->tensor.defined())
      throw error(errc::misuse, std::string("the module has no ") + kind + " '" + name + "'; nothing was written");
    if (!value.defined() || !value.sizes().equals(to->tensor.sizes()) || value.scalar_type() != to->tensor.scalar_type())
      throw error(errc::misuse, to->kind + " '" + name + "' is " + describe(to->tensor) + ", the value given " +
                                  describe(value) + "; nothing was written");
    if (const auto* why = objects::why_not_overwritable(to->tensor))
      throw error(errc::misuse, to->kind + " '" + name + "' is " + why + " there; nothing was written");
    copies.emplace_back(&*to, value);
  }
  if (what.of == requests::tensors::state)
    for (const auto& each : there)
      if (std::none_of(copies.begin(), copies.end(), [&](const auto& copy) { return copy.first == &each; }))
        throw error(errc::misuse, "no value was given for " + each.kind + " '" + each.name + "'; nothing was written");
  const auto lock = begin_change(here, arguments, what);
  at::NoGradGuard no_grad;
  for (auto& [to, from] : copies) at::Tensor(to->tensor).copy_(from);
  return {};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::train& what) {
  const auto found = here.objects.find_module(arguments.target);
  const auto lock = begin_change(here, arguments, what);
  found->train(what.on);
  return {};
}

call_reply serve(node_services& here, call_arguments&, const requests::create_optimizer& what) {
  std::vector<std::shared_ptr<module>> modules;
  objects::grouping groups{{}, {}, {}};
  for (const auto& group : what.groups) {
    for (const auto number : group.modules) {
      modules.push_back(here.objects.find_module({here.objects.here(), number}));
      groups.of_modules.push_back(groups.options.size());
    }
    groups.options.push_back(group.options);
  }
  if (what.groups.empty()) throw error(errc::misuse, "optimizer: there is no parameter group; give at least one");
  auto made = std::make_shared<objects::local_optimizer>(optimizer_settings{what.type, what.options}, std::move(modules),
                                                         named_tensors{}, named_tensors{}, groups);
  const auto counts = made->counts();
  auto reply = reply_of(give(here, what.owner, std::move(made)));
  reply.values["counts"] = counts;
  return reply;
}

/// Replies with the completed and failed passes of a context that this node opened. The asking node may hold gradients of the
/// context. With a policy, the asking node has to take part in the context.
call_reply serve(node_services& here, call_arguments& arguments, const requests::passes& what) {
  const context_id id{here.objects.here(), what.context};
  const auto context = here.contexts.find(id);
  if (!context.record) throw error(errc::unknown_context, to_string(id) + " was released, or is of another run of this node");
  if (!here.rights.takes_part(arguments.caller, id))
    throw support::refused_request("the caller has no part in the context " + to_string(id) +
                                   ", and the policy lets its role ask only for passes of contexts in which it has one");
  const auto known = context.record->passes();
  return {{}, calls::to_attributes(contracts::pass_history{known.completed, known.list_failed()})};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::gather& what) {
  here.objects.find_optimizer(arguments.target)->gather(gradients_of(arguments), what.round);
  return {};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::forget& what) {
  here.objects.find_optimizer(arguments.target)->forget_gathered(what.round);
  return {};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::norm& what) {
  const auto norms = here.objects.find_optimizer(arguments.target)->norms(what.gathered ? nullptr : &gradients_of(arguments));
  return {{at::tensor(norms.sums, at::kDouble)}, {{"not_finite", norms.not_finite}}};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::step& what) {
  const auto found = here.objects.find_optimizer(arguments.target);
  what.gathered ? found->gathered_step(what.scale, what.which) : found->step(gradients_of(arguments), what.scale, what.which);
  return {};
}

/// Replies whether the optimizer has made the change (has_made).
call_reply serve(node_services& here, call_arguments& arguments, const requests::made& what) {
  return {{}, {{"made", here.objects.find_optimizer(arguments.target)->has_made(what.number, what.give_up)}}};
}

call_reply serve(node_services& here, call_arguments& arguments, const requests::set_rates& what) {
  here.objects.find_optimizer(arguments.target)->set_learning_rates(what.which);
  return {};
}

}  // namespace

call_reply serve_request(node_services& here, const request& what, call_arguments& arguments) {
  return std::visit([&](const auto& each) { return serve(here, arguments, each); }, what);
}

}  // namespace troupe::nodes
