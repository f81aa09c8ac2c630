// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/builtin_functions.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/nodes/node_parts.hpp>
#include <troupe/actors/objects/loaded_script.hpp>
#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/actors/objects/module_selection.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/objects/overwritable.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe::nodes {

namespace {

/// Removes one of troupe's own values and returns it. The user's values stay.
attribute extract(attributes& values, const char* name) {
  auto found = values.extract(name);
  if (found.empty()) throw error(errc::misuse, std::string("the call carries no value '") + name + "'");
  return std::move(found.mapped());
}

std::string take_text(attributes& values, const char* name) {
  auto value = extract(values, name);
  if (auto* text = std::get_if<std::string>(&value.value)) return std::move(*text);
  throw error(errc::misuse, std::string("the call's value '") + name + "' is not a text");
}

node_id extract_owner(attributes& values) {
  const node_id owner{calls::number_from(values, calls::value_names::owner)};
  values.erase(calls::value_names::owner);
  return owner;
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  plain_stream text;
  text << tensor.sizes() << " " << tensor.scalar_type();
  return text.str();
}

const engine::gradient_table& gradients_of(const call_arguments& arguments) {
  if (!arguments.context) throw error(errc::misuse, "gradients are gathered in a context, and this call came outside any");
  return *arguments.gradients;
}

void refuse_if_down(node_parts& here, node_id who) {
  const auto& known = here.services.directory;
  if (known.is_down(who)) throw error(errc::peer_down, "node '" + known.name(who) + "' went down before its object was there");
}

/// Adds the object to the store for its owner. Refuses an owner that went down while its call waited: that owner would never
/// drop the object.
template <class... Object>
object_id give(node_parts& here, node_id owner, Object... object) {
  const auto id = here.objects.add(owner, std::move(object)...);
  try {
    refuse_if_down(here, owner);
  } catch (...) {
    here.objects.drop(id, owner);
    throw;
  }
  return id;
}

call_reply create(node_parts& here, call_arguments& arguments) {
  auto type = take_text(arguments.values, calls::value_names::type);
  const auto owner = extract_owner(arguments.values);
  const auto id = give(here, owner, here.objects.make_module(type, arguments.values), type);
  return {{}, {{calls::value_names::object, calls::to_attribute(id.number)}}};
}

call_reply create_script(node_parts& here, call_arguments& arguments) {
  // What a peer asks this node to ask itself counts as the peer's wish, and the policy was not asked about it.
  const bool is_let_in = here.services.network.peers.policy != nullptr && arguments.caller != here.services.self.id();
  const bool may = here.services.options.allow_scripts || is_let_in;
  if (!arguments.from_itself && !may)
    throw support::refused_request(
      "TorchScript is code, and this node runs no code of other nodes; start the node with --allow-scripts "
      "(settings::allow_scripts) if it may run theirs");
  const auto owner = extract_owner(arguments.values);
  const auto id = give(here, owner, objects::load_script(arguments.tensor(0)), std::string(objects::object_store::script_type));
  return {{}, {{calls::value_names::object, calls::to_attribute(id.number)}}};
}

call_reply drop(node_parts& here, call_arguments& arguments) {
  if (arguments.target) here.objects.drop(arguments.target, extract_owner(arguments.values));
  return {};
}

call_reply lend(node_parts& here, call_arguments& arguments) {
  const auto from = extract_owner(arguments.values);
  const node_id to{calls::number_from(arguments.values, calls::value_names::to)};
  refuse_if_down(here, to);
  return {{}, {{calls::value_names::ticket, calls::to_attribute(here.objects.lend(arguments.target, from, to))}}};
}

call_reply take_loan(node_parts& here, call_arguments& arguments) {
  const auto to = extract_owner(arguments.values);
  here.objects.accept_loan(arguments.target, calls::number_from(arguments.values, calls::value_names::ticket), to);
  return {};
}

call_reply select(node_parts& here, call_arguments& arguments) {
  const auto owner = extract_owner(arguments.values);
  std::vector<std::string> names;
  for (std::size_t i = 0; arguments.values.contains(std::to_string(i)); ++i)
    names.push_back(get<std::string>(arguments.values, std::to_string(i)));
  auto part = std::make_shared<objects::module_selection>(here.objects.find_module(arguments.target), names);
  auto type = here.objects.type_of(arguments.target);
  const auto id = give(here, owner, std::shared_ptr<module>(std::move(part)), std::move(type));
  return {{}, {{calls::value_names::object, calls::to_attribute(id.number)}}};
}

call_reply parameter(node_parts& here, call_arguments& arguments) {
  const auto name = get<std::string>(arguments.values, calls::value_names::name);
  const auto found = objects::find_parameter(*here.objects.find_module(arguments.target), name);
  if (arguments.context) return {{found}};
  at::NoGradGuard no_grad;
  return {{found.detach().clone()}};
}

call_reply method(node_parts& here, call_arguments& arguments) {
  auto name = take_text(arguments.values, calls::value_names::method);
  return here.objects.find_module(arguments.target)->call(name, arguments);
}

/// A reply with copies of the tensors: the originals may change while the reply is written.
call_reply copies_of(const named_tensors& all) {
  at::NoGradGuard no_grad;
  call_reply reply;
  for (const auto& [name, tensor] : all) {
    reply.values.emplace(std::to_string(reply.tensors.size()), name);
    reply.tensors.push_back(tensor.defined() ? tensor.detach().clone() : tensor);
  }
  return reply;
}

call_reply parameters(node_parts& here, call_arguments& arguments) {
  return copies_of(here.objects.find_module(arguments.target)->parameters());
}

call_reply buffers(node_parts& here, call_arguments& arguments) {
  return copies_of(here.objects.find_module(arguments.target)->buffers());
}

call_reply gradients(node_parts& here, call_arguments& arguments) {
  const auto& table = gradients_of(arguments);
  auto all = here.objects.find_module(arguments.target)->parameters();
  for (auto& [name, tensor] : all) tensor = table.find(tensor);
  return copies_of(all);
}

/// For a call that changes an object: see object_store::begin_change().
objects::object_store::change_lock begin_change(node_parts& here, const call_arguments& arguments) {
  const auto number = [&](const char* name) {
    return arguments.values.contains(name) ? calls::number_from(arguments.values, name) : 0;
  };
  return here.objects.begin_change(arguments.target, arguments.caller, number("change"), number("first_change"));
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

/// Parameters first. Throws if a buffer has the name of a parameter.
std::vector<overwritable_tensor> state_of(module& of) {
  auto all = parameters_of(of);
  for (auto& buffer : buffers_of(of)) {
    if (std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.name == buffer.name; }))
      throw error(errc::misuse, "the module's state has '" + buffer.name + "' twice; use parameters() and buffers()");
    all.push_back(std::move(buffer));
  }
  return all;
}

/// Overwrites the tensors of `there` that the call names. If a value does not fit, no tensor is overwritten. `kind`: of which the call
/// speaks. With `whole`, the call has to name all of them.
call_reply overwrite(node_parts& here, const std::vector<overwritable_tensor>& there, const std::string& kind,
                     const call_arguments& arguments, bool whole = false) {
  std::vector<std::pair<const overwritable_tensor*, at::Tensor>> copies;  // to, from
  for (std::size_t i = 0; i < arguments.tensors.size(); ++i) {
    const auto& value = arguments.tensors[i];
    const auto name = get<std::string>(arguments.values, std::to_string(i));
    const auto to = std::find_if(there.begin(), there.end(), [&](const auto& each) { return each.name == name; });
    if (to == there.end() || !to->tensor.defined())
      throw error(errc::misuse, "the module has no " + kind + " '" + name + "'; nothing was written");
    if (!value.defined() || !value.sizes().equals(to->tensor.sizes()) || value.scalar_type() != to->tensor.scalar_type())
      throw error(errc::misuse, to->kind + " '" + name + "' is " + describe(to->tensor) + ", the value given " +
                                  describe(value) + "; nothing was written");
    if (const auto* why = objects::why_not_overwritable(to->tensor))
      throw error(errc::misuse, to->kind + " '" + name + "' is " + why + " there; nothing was written");
    copies.emplace_back(&*to, value);
  }
  if (whole)
    for (const auto& each : there)
      if (std::none_of(copies.begin(), copies.end(), [&](const auto& copy) { return copy.first == &each; }))
        throw error(errc::misuse, "no value was given for " + each.kind + " '" + each.name + "'; nothing was written");
  const auto lock = begin_change(here, arguments);
  at::NoGradGuard no_grad;
  for (auto& [to, from] : copies) at::Tensor(to->tensor).copy_(from);
  return {};
}

/// Of buffers too: a state is written by it, whether it came by state() or by parameters() and buffers().
call_reply set_parameters(node_parts& here, call_arguments& arguments) {
  const auto found = here.objects.find_module(arguments.target);
  auto all = parameters_of(*found);
  for (auto& buffer : buffers_of(*found)) all.push_back(std::move(buffer));
  return overwrite(here, all, "parameter", arguments);
}

call_reply set_buffers(node_parts& here, call_arguments& arguments) {
  return overwrite(here, buffers_of(*here.objects.find_module(arguments.target)), "buffer", arguments);
}

call_reply state(node_parts& here, call_arguments& arguments) {
  named_tensors all;
  for (auto& each : state_of(*here.objects.find_module(arguments.target))) all.emplace_back(each.name, each.tensor);
  return copies_of(all);
}

call_reply set_state(node_parts& here, call_arguments& arguments) {
  return overwrite(here, state_of(*here.objects.find_module(arguments.target)), "parameter or buffer", arguments, true);
}

call_reply train(node_parts& here, call_arguments& arguments) {
  const auto found = here.objects.find_module(arguments.target);
  const auto lock = begin_change(here, arguments);
  found->train(get<bool>(arguments.values, "on"));
  return {};
}

/// The groups of the modules: "in.<module>" is the group of a module, "groups" how many groups there are, "group.<group>.<option>" an
/// option of a group.
objects::grouping groups_in(const attributes& values, std::size_t modules) {
  constexpr std::int64_t most = 65'536;
  const auto count = get_or(values, "groups", std::int64_t{1});
  const auto check = [](std::int64_t number, std::int64_t limit) {
    if (number < 0 || number >= limit)
      throw error(errc::misuse,
                  "optimizer: expected a parameter group below " + std::to_string(limit) + ", got " + std::to_string(number));
    return static_cast<std::size_t>(number);
  };
  objects::grouping all{std::vector<attributes>(check(count - 1, most) + 1), {}, {}};
  for (std::size_t i = 0; i < modules; ++i)
    all.of_modules.push_back(check(get_or(values, "in." + std::to_string(i), std::int64_t{0}), count));
  for (std::size_t g = 0; g < all.options.size(); ++g) {
    const auto prefix = "group." + std::to_string(g) + ".";
    for (auto i = values.lower_bound(prefix); i != values.end() && i->first.starts_with(prefix); ++i)
      all.options[g].emplace(i->first.substr(prefix.size()), i->second);
  }
  return all;
}

call_reply create_optimizer(node_parts& here, call_arguments& arguments) {
  const auto owner = extract_owner(arguments.values);
  optimizer_settings settings{take_text(arguments.values, calls::value_names::type), {}};
  std::vector<std::shared_ptr<module>> modules;
  const std::string module_prefix = "module.";
  const std::string option_prefix = "option.";
  for (const auto& [name, value] : arguments.values)
    if (name.starts_with(option_prefix)) settings.values.emplace(name.substr(option_prefix.size()), value);
  for (std::size_t i = 0; arguments.values.contains(module_prefix + std::to_string(i)); ++i)
    modules.push_back(
      here.objects.find_module({here.objects.here(), calls::number_from(arguments.values, module_prefix + std::to_string(i))}));
  const auto groups = groups_in(arguments.values, modules.size());
  auto made =
    std::make_shared<objects::local_optimizer>(settings, std::move(modules), named_tensors{}, named_tensors{}, groups);
  call_reply reply;
  for (std::size_t i = 0; i < made->counts().size(); ++i)
    reply.values.emplace("count." + std::to_string(i), static_cast<std::int64_t>(made->counts()[i]));
  reply.values["numbered"] = true;  // a version that makes a change with a number once, and knows parameter groups
  reply.values[calls::value_names::object] = calls::to_attribute(give(here, owner, std::move(made)).number);
  return reply;
}

/// Replies with the completed and failed passes of a context that this node opened. Asked by another node that holds gradients
/// of the context. With a policy, that node needs a part in the context.
call_reply passes(node_parts& here, call_arguments& arguments) {
  const context_id id{here.objects.here(), calls::number_from(arguments.values, calls::value_names::object)};
  const auto context = here.contexts.find(id);
  if (!context.record) throw error(errc::unknown_context, to_string(id) + " was released, or is of another run of this node");
  if (!here.rights.has_part(arguments.caller, id))
    throw support::refused_request("the caller has no part in the context " + to_string(id) +
                                   ", and the policy lets its role ask only for passes of contexts in which it has one");
  const auto known = context.record->passes();
  return {{}, calls::to_attributes(contracts::pass_history{known.completed, known.list_failed()})};
}

/// The change that the call asks for; an earlier version of troupe does not number its changes.
objects::change change_in(const call_arguments& arguments) {
  const auto number = [&](const char* name) {
    return arguments.values.contains(name) ? calls::number_from(arguments.values, name) : 0;
  };
  objects::change which{number("number"), number("round")};
  // "rate" is the learning rate of the first parameter group, "rate.<group>" that of another one.
  const std::string_view rate = "rate";
  for (const auto& [name, value] : arguments.values) {
    std::size_t group = 0;
    const auto* const end = name.data() + name.size();
    if (name == rate || (name.starts_with("rate.") && std::from_chars(name.data() + rate.size() + 1, end, group).ptr == end))
      which.rates.emplace(group, get<double>(arguments.values, name));
  }
  return which;
}

call_reply gather(node_parts& here, call_arguments& arguments) {
  here.objects.find_optimizer(arguments.target)->gather(gradients_of(arguments), change_in(arguments).round);
  return {};
}

call_reply forget(node_parts& here, call_arguments& arguments) {
  here.objects.find_optimizer(arguments.target)->forget_gathered(change_in(arguments).round);
  return {};
}

call_reply reply_of(const objects::squared_norms& norms) {
  return {{at::tensor(norms.sums, at::kDouble)}, {{"not_finite", norms.not_finite}}};
}

call_reply norm(node_parts& here, call_arguments& arguments) {
  const auto gradients = gradients_of(arguments);
  return reply_of(here.objects.find_optimizer(arguments.target)->norms(&gradients));
}

call_reply gathered_norm(node_parts& here, call_arguments& arguments) {
  return reply_of(here.objects.find_optimizer(arguments.target)->norms());
}

call_reply step(node_parts& here, call_arguments& arguments) {
  here.objects.find_optimizer(arguments.target)
    ->step(gradients_of(arguments), get<double>(arguments.values, "scale"), change_in(arguments));
  return {};
}

call_reply gathered_step(node_parts& here, call_arguments& arguments) {
  here.objects.find_optimizer(arguments.target)->gathered_step(get<double>(arguments.values, "scale"), change_in(arguments));
  return {};
}

/// Replies with whether the change was made (has_made).
call_reply made(node_parts& here, call_arguments& arguments) {
  const auto found = here.objects.find_optimizer(arguments.target);
  return {{}, {{"made", found->has_made(change_in(arguments).number, get<bool>(arguments.values, "give_up"))}}};
}

call_reply set_rate(node_parts& here, call_arguments& arguments) {
  here.objects.find_optimizer(arguments.target)->set_learning_rates(change_in(arguments));
  return {};
}

}  // namespace

void add_builtin_functions(node_parts& here) {
  const auto add = [&](const char* name, call_reply (*run)(node_parts&, call_arguments&)) {
    here.functions.add(name, [&here, run](call_arguments& arguments) { return run(here, arguments); });
  };
  add("troupe.create", create);
  add("troupe.create_script", create_script);
  add("troupe.drop", drop);
  add("troupe.lend", lend);
  add("troupe.take", take_loan);
  add("troupe.select", select);
  add("troupe.parameter", parameter);
  add("troupe.method", method);
  add("troupe.parameters", parameters);
  add("troupe.set_parameters", set_parameters);
  add("troupe.buffers", buffers);
  add("troupe.set_buffers", set_buffers);
  add("troupe.state", state);
  add("troupe.set_state", set_state);
  add("troupe.train", train);
  add("troupe.gradients", gradients);
  add("troupe.passes", passes);
  add("troupe.optimizer.create", create_optimizer);
  add("troupe.optimizer.norm", norm);
  add("troupe.optimizer.step", step);
  add("troupe.optimizer.gather", gather);
  add("troupe.optimizer.forget", forget);
  add("troupe.optimizer.gathered_norm", gathered_norm);
  add("troupe.optimizer.gathered_step", gathered_step);
  add("troupe.optimizer.set_rate", set_rate);
  add("troupe.optimizer.made", made);
}

}  // namespace troupe::nodes
