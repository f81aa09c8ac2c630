// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/calls/peer_rights.hpp>

#include <concepts>
#include <cstdint>
#include <variant>

#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/open_contexts.hpp>
#include <troupe/actors/services/node_actors.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/services/node_network.hpp>
#include <troupe/actors/settings.hpp>

namespace troupe::calls {

namespace {

using rights::role_rights;

template <class T, class... Of>
constexpr bool is_one_of = (std::same_as<T, Of> || ...);

enum class need : std::uint8_t { nothing, function, create, scripts, method, read, write, save, trace };

/// The right that the caller needs for a request of this type. A type that is not named here does not compile (RB-4).
template <class T>
consteval need need_of() {
  if constexpr (is_one_of<T, requests::drop, requests::lend, requests::take, requests::passes>) return need::nothing;
  if constexpr (is_one_of<T, requests::function>) return need::function;
  if constexpr (is_one_of<T, requests::create_module>) return need::create;
  if constexpr (is_one_of<T, requests::create_script>) return need::scripts;
  if constexpr (is_one_of<T, requests::method>) return need::method;
  if constexpr (is_one_of<T, requests::parameter, requests::read, requests::select>) return need::read;
  if constexpr (is_one_of<T, requests::write, requests::train, requests::create_optimizer, requests::norm, requests::step,
                          requests::gather, requests::forget, requests::set_rates, requests::made>)
    return need::write;
  if constexpr (is_one_of<T, requests::expect_disk_space, requests::save, requests::remove, requests::snapshot, requests::piece,
                          requests::receive, requests::load, requests::apply, requests::discard>)
    return need::save;
  if constexpr (is_one_of<T, requests::trace, requests::spans>) return need::trace;
}

/// Whether the request uses the object that the call names, so that the caller has to own the object. For requests::drop and
/// requests::take the object store checks the owner.
template <class T>
constexpr bool is_of_object =
  need_of<T>() == need::method || need_of<T>() == need::read || need_of<T>() == need::save ||
  (need_of<T>() == need::write && !std::same_as<T, requests::create_optimizer>) || std::same_as<T, requests::lend>;

/// The right that the role lacks for the request, as a text such as "make modules of the type 'Stage'"; empty if the role may
/// make the request.
template <class T>
std::string lacking(const role_rights& has, const T& what, object_id target, const objects::object_store& objects) {
  constexpr auto needs = need_of<T>();
  if constexpr (needs == need::nothing) return {};
  if constexpr (needs == need::function) return has.call.has(what.name) ? "" : "call the function '" + what.name + "'";
  if constexpr (needs == need::create) return has.may_make(what.type) ? "" : "make modules of the type '" + what.type + "'";
  if constexpr (needs == need::scripts) return has.scripts ? "" : "send TorchScript";
  if constexpr (needs == need::method) {
    const auto type = objects.type_of(target);
    return has.may_call(type, what.name) ? "" : "call the method '" + what.name + "' of modules of the type '" + type + "'";
  }
  if constexpr (needs == need::read) return has.of_weights != role_rights::weights::none ? "" : "read weights";
  if constexpr (needs == need::write) return has.of_weights == role_rights::weights::write ? "" : "change weights";
  if constexpr (needs == need::save) return has.save ? "" : "save and load checkpoints";
  if constexpr (needs == need::trace) return has.trace ? "" : "read or write its trace";
}

/// Whether node `who` owns all objects that the request uses.
template <class T>
bool owns_all(node_id who, const T& what, object_id target, const objects::object_store& objects) {
  if constexpr (is_of_object<T>) return objects.is_owned_by(target, who);
  if constexpr (std::same_as<T, requests::create_optimizer>)
    for (const auto& group : what.groups)
      for (const auto number : group.modules)
        if (!objects.is_owned_by({objects.here(), number}, who)) return false;
  return true;
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
  return std::visit([&](const auto& what) { return why_not(call, what); }, call.what);
}

template <class T>
std::string peer_rights::why_not(const call_request& call, const T& what) const {
  const auto caller = call.payload.message.node;
  if constexpr (requires { what.owner; })
    if (what.owner != caller) return "the call acts in the name of another node, '" + directory_.name(what.owner) + "'";
  if (here_.network.peers.policy == nullptr) return {};
  const auto refused = [](const std::string& right) { return "the policy does not let this role " + right; };
  if (const auto right = lacking(of(caller), what, call.target, objects_); !right.empty()) return refused(right);
  if (!owns_all(caller, what, call.target, objects_))
    return "the caller does not own the object, and the policy keeps objects apart";
  if (need_of<T>() == need::nothing && call.payload.context && !takes_part(caller, call.payload.context))
    return refused("call functions that need no right in a context in which the caller has no part");
  return {};
}

bool peer_rights::takes_part(node_id who, const context_id& id) const {
  if (here_.network.peers.policy == nullptr || who == here_.self.id() || id.node == who || of(who).all_contexts) return true;
  const auto context = contexts_.find(id);
  return context.record && context.record->members.takes_part(who);
}

std::string peer_rights::why_not(const caf::strong_actor_ptr& sender, bool role_rights::*right, const std::string& what) const {
  const auto& policy = here_.network.peers.policy;
  if (policy == nullptr || (sender && sender->node() == here_.actors.system->node())) return {};
  const auto proven = sender ? here_.network.peers.ids->find(gate::bytes_of(sender->node())) : std::nullopt;
  if (proven && policy->now().of(proven->role).*right) return {};
  return (proven ? "node '" + proven->node + "' of the role '" + proven->role + "'"
                 : std::string("a node that is not connected")) +
         " may not " + what + ": the policy does not let it";
}

}  // namespace troupe::calls
