// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/peer_rights.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <variant>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/actors/services/node_services.hpp>

namespace troupe::calls {

namespace {

using rights::role_rights;

constexpr std::string_view begin_of_own_functions = "troupe.";

enum class need : std::uint8_t { nothing, create, scripts, method, read, write, save, trace };

/// What the caller of a function of troupe's own needs.
struct rule {
  std::string_view function;
  need what;
  bool is_of_object;  // the call is on an object
  bool names_owner;   // the call says for which node it takes, lends or drops an object
};

constexpr std::array rules = {
  rule{"troupe.create", need::create, false, true},
  rule{"troupe.create_script", need::scripts, false, true},
  rule{"troupe.drop", need::nothing, false, true},
  rule{"troupe.lend", need::nothing, true, true},
  rule{"troupe.take", need::nothing, false, true},
  rule{"troupe.select", need::read, true, true},
  rule{"troupe.parameter", need::read, true, false},
  rule{"troupe.method", need::method, true, false},
  rule{"troupe.parameters", need::read, true, false},
  rule{"troupe.set_parameters", need::write, true, false},
  rule{"troupe.buffers", need::read, true, false},
  rule{"troupe.set_buffers", need::write, true, false},
  rule{"troupe.state", need::read, true, false},
  rule{"troupe.set_state", need::write, true, false},
  rule{"troupe.train", need::write, true, false},
  rule{"troupe.gradients", need::read, true, false},
  rule{"troupe.passes", need::nothing, false, false},
  rule{"troupe.optimizer.create", need::write, false, true},
  rule{"troupe.optimizer.norm", need::write, true, false},
  rule{"troupe.optimizer.step", need::write, true, false},
  rule{"troupe.optimizer.gather", need::write, true, false},
  rule{"troupe.optimizer.forget", need::write, true, false},
  rule{"troupe.optimizer.gathered_norm", need::write, true, false},
  rule{"troupe.optimizer.gathered_step", need::write, true, false},
  rule{"troupe.optimizer.set_rate", need::write, true, false},
  rule{"troupe.optimizer.made", need::write, true, false},
  rule{"troupe.optimizer.expect_room", need::save, true, false},
  rule{"troupe.optimizer.save", need::save, true, false},
  rule{"troupe.optimizer.remove", need::save, true, false},
  rule{"troupe.optimizer.snapshot", need::save, true, false},
  rule{"troupe.optimizer.piece", need::save, true, false},
  rule{"troupe.optimizer.receive", need::save, true, false},
  rule{"troupe.optimizer.load", need::save, true, false},
  rule{"troupe.optimizer.apply", need::save, true, false},
  rule{"troupe.optimizer.discard", need::save, true, false},
  rule{"troupe.trace", need::trace, false, false},
  rule{"troupe.spans", need::trace, false, false},
};

const rule* rule_of(const std::string& function) {
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const rule& each) { return each.function == function; });
  return found == rules.end() ? nullptr : &*found;
}

std::string text_in(const attributes& values, const char* name) {
  const auto found = values.find(name);
  const auto* text = found == values.end() ? nullptr : std::get_if<std::string>(&found->second.value);
  return text == nullptr ? std::string() : *text;
}

/// The node in whose name the call acts; nothing if the call does not say it as it should, which the function itself refuses.
std::optional<node_id> owner_in(const attributes& values) {
  const auto found = values.find(value_names::owner);
  const auto* number = found == values.end() ? nullptr : std::get_if<std::int64_t>(&found->second.value);
  return number == nullptr ? std::nullopt : std::optional(node_id{static_cast<std::uint64_t>(*number)});
}

/// What the role lacks for the call, as in "make modules of the type 'Stage'"; empty if it lacks nothing.
std::string lacking(const role_rights& has, const rule& of, const call_request& call, const objects::object_store& objects) {
  switch (of.what) {
    case need::nothing:
      return {};
    case need::create: {
      const auto type = text_in(call.values, value_names::type);
      return has.may_make(type) ? "" : "make modules of the type '" + type + "'";
    }
    case need::scripts:
      return has.scripts ? "" : "send TorchScript";
    case need::method: {
      const auto type = objects.type_of(call.target);
      const auto method = text_in(call.values, value_names::method);
      return has.may_call(type, method) ? "" : "call the method '" + method + "' of modules of the type '" + type + "'";
    }
    case need::read:
      return has.of_weights != role_rights::weights::none ? "" : "read weights";
    case need::write:
      return has.of_weights == role_rights::weights::write ? "" : "change weights";
    case need::save:
      return has.save ? "" : "save and load checkpoints";
    case need::trace:
      return has.trace ? "" : "read or write its trace";
  }
  return "do this";
}

/// Whether the node owns the objects that the call uses.
bool owns_all(node_id who, const rule& of, const call_request& call, const objects::object_store& objects) {
  if (of.is_of_object && !objects.is_owned_by(call.target, who)) return false;
  if (of.function != "troupe.optimizer.create") return true;
  return std::all_of(call.values.begin(), call.values.end(), [&](const auto& each) {
    const auto* number = std::get_if<std::int64_t>(&each.second.value);
    return !each.first.starts_with("module.") || number == nullptr ||
           objects.is_owned_by({objects.here(), static_cast<std::uint64_t>(*number)}, who);
  });
}

}  // namespace

const role_rights& peer_rights::of(node_id who) const {
  static const role_rights everything = [] {
    role_rights all;
    all.call.has_all = true;
    all.modules["*"].has_all = true;
    all.of_weights = role_rights::weights::write;
    all.save = all.scripts = all.actors = all.all_contexts = all.trace = all.status = all.members = true;
    return all;
  }();
  static const role_rights nothing;
  const auto& policy = here_.network.peers.policy;
  if (policy == nullptr || who == here_.self.id()) return everything;
  const auto proven = here_.network.peers.introduced->find(who);
  return proven ? policy->now().of(proven->role) : nothing;
}

std::string peer_rights::why_not(const call_request& call) const {
  const auto caller = call.payload.message.node;
  if (caller == here_.self.id() || here_.options.certificates.empty()) return {};
  const auto* const own_rule = rule_of(call.function);
  if (own_rule != nullptr && own_rule->names_owner)
    if (const auto owner = owner_in(call.values); owner && *owner != caller)
      return "the call acts in the name of another node, '" + here_.directory.name(*owner) + "'";
  if (here_.network.peers.policy == nullptr) return {};
  const auto& has = of(caller);
  const auto refused = [](const std::string& what) { return "the policy does not let this role " + what; };
  if (own_rule == nullptr) {
    const bool is_own = std::string_view(call.function).starts_with(begin_of_own_functions);
    const bool may = is_own ? has.call.names.contains(call.function) : has.call.has(call.function);
    return may ? "" : refused("call the function '" + call.function + "'");
  }
  if (const auto what = lacking(has, *own_rule, call, objects_); !what.empty()) return refused(what);
  if (!owns_all(caller, *own_rule, call, objects_))
    return "the caller does not own the object, and the policy keeps objects apart";
  if (own_rule->what == need::nothing && call.payload.context && !has_part(caller, call.payload.context))
    return refused("call functions that need no right in a context in which the caller has no part");
  return {};
}

bool peer_rights::has_part(node_id who, const context_id& id) const {
  if (here_.network.peers.policy == nullptr || who == here_.self.id() || id.node == who || of(who).all_contexts) return true;
  const auto context = contexts_.find(id);
  return context.record && context.record->members.has_part(who);
}

std::string peer_rights::why_not(const caf::strong_actor_ptr& sender, bool role_rights::*right, const std::string& what) const {
  const auto& policy = here_.network.peers.policy;
  if (policy == nullptr || (sender && sender->node() == here_.actors.system->node())) return {};
  const auto proven = sender ? here_.network.peers.ids->find(network::bytes_of(sender->node())) : std::nullopt;
  if (proven && policy->now().of(proven->role).*right) return {};
  return (proven ? "node '" + proven->node + "' of the role '" + proven->role + "'"
                 : std::string("a node that is not connected")) +
         " may not " + what + ": the policy does not let it";
}

}  // namespace troupe::calls
