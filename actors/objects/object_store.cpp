// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/object_store.hpp>

#include <algorithm>
#include <utility>

#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/actors/support/refused_request.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe::objects {

void object_store::add_module_type(const std::string& type, module_maker make) {
  checked_lock lock(mutex_);
  if (!types_.emplace(type, std::move(make)).second)
    throw error(errc::misuse, "node '" + node_name_ + "' already has a module type '" + type + "'");
}

std::shared_ptr<module> object_store::make_module(const std::string& type, const attributes& values) const {
  module_maker make;
  {
    checked_lock lock(mutex_);
    auto found = types_.find(type);
    if (found == types_.end()) {
      std::string known;
      for (const auto& [name, maker] : types_) support::add_quoted(known, name);
      throw error(errc::unknown_function, "node '" + node_name_ + "' has no module type '" + type + "'; it has " +
                                            (known.empty() ? "none (register one with add_module_type)" : known));
    }
    make = found->second;
  }
  auto made = make(values);
  if (made == nullptr)
    throw error(errc::function_failed, "the maker of module type '" + type + "' on node '" + node_name_ + "' returned null");
  return made;
}

object_id object_store::add(node_id owner, std::shared_ptr<module> object, std::string type) {
  return insert(owner, std::move(object), std::move(type));
}

object_id object_store::add(node_id owner, std::shared_ptr<local_optimizer> object) {
  return insert(owner, std::move(object), {});
}

object_id object_store::insert(node_id owner, object held, std::string type) {
  checked_lock lock(mutex_);
  count(owner);
  const object_id id{here_, ++last_number_};
  objects_.emplace(id, entry{std::move(held), {owner}, {}, std::move(type), std::make_shared<changes>()});
  return id;
}

void object_store::count(node_id owner) {
  auto& owned = owned_[owner];
  if (owner != here_ && owned >= most_of_one)
    throw support::refused_request("node '" + node_name_ + "' keeps " + std::to_string(most_of_one) +
                                   " objects of one node, and no more; drop some");
  ++owned;
}

void object_store::count_off(node_id owner, std::size_t times) {
  if (const auto found = owned_.find(owner); found != owned_.end() && (found->second -= times) == 0) owned_.erase(found);
}

template <class T>
std::shared_ptr<T> object_store::find(object_id id, const char* kind) const {
  checked_lock lock(mutex_);
  auto found = objects_.find(id);
  if (found == objects_.end()) refuse(id, kind);
  const auto* held = std::get_if<std::shared_ptr<T>>(&found->second.held);
  if (held == nullptr)
    throw error(errc::unknown_function, "object " + to_string(id) + " of node '" + node_name_ + "' is not " + kind);
  return *held;
}

object_store::change_lock object_store::begin_change(object_id id, node_id caller, std::uint64_t number, std::uint64_t first) {
  std::shared_ptr<changes> of;
  {
    checked_lock lock(mutex_);
    const auto found = objects_.find(id);
    if (found == objects_.end()) refuse(id, "one to change");
    of = found->second.changed;
  }
  std::unique_lock lock(of->mutex);
  auto& known = of->firsts[caller];
  known = std::max(known, first);
  if (number < known)
    throw error(errc::misuse, "object " + to_string(id) + " of node '" + node_name_ +
                                "': the change came late, after a later one of the same node; nothing was changed");
  return {std::move(of), std::move(lock)};
}

std::shared_ptr<module> object_store::find_module(object_id id) const { return find<module>(id, "a module"); }

std::shared_ptr<local_optimizer> object_store::find_optimizer(object_id id) const {
  return find<local_optimizer>(id, "an optimizer");
}

void object_store::refuse(object_id id, const std::string& expected) const {
  throw error(errc::unknown_function, "node '" + node_name_ + "' has no object " + to_string(id) + ", expected " + expected +
                                        "; it was dropped, or its owner went down");
}

std::string object_store::type_of(object_id id) const {
  checked_lock lock(mutex_);
  const auto found = objects_.find(id);
  return found == objects_.end() ? std::string() : found->second.type;
}

bool object_store::is_owned_by(object_id id, node_id owner) const {
  checked_lock lock(mutex_);
  const auto found = objects_.find(id);
  if (found == objects_.end()) return true;
  const auto& owners = found->second.owners;
  return std::find(owners.begin(), owners.end(), owner) != owners.end();
}

bool object_store::drop(object_id id, node_id owner) {
  decltype(objects_)::node_type dropped;  // destroyed after the lock is released
  checked_lock lock(mutex_);
  auto found = objects_.find(id);
  if (found == objects_.end()) return false;
  auto& owners = found->second.owners;
  if (auto one = std::find(owners.begin(), owners.end(), owner); one != owners.end()) {
    owners.erase(one);
    count_off(owner);
  }
  if (found->second.is_free()) dropped = objects_.extract(found);
  return !dropped.empty();
}

std::shared_ptr<void> object_store::drop_owned_by(node_id owner) {
  auto dropped = std::make_shared<std::vector<entry>>();
  checked_lock lock(mutex_);
  for (auto it = objects_.begin(); it != objects_.end();) {
    auto& each = it->second;
    count_off(owner, std::erase(each.owners, owner));
    std::erase_if(each.loans, [&](const loan& open) { return open.from == owner || open.to == owner; });
    if (each.is_free()) {
      dropped->push_back(std::move(each));
      it = objects_.erase(it);
    } else {
      ++it;
    }
  }
  return dropped;
}

std::shared_ptr<void> object_store::settle(node_id owner, const std::vector<std::uint64_t>& held) {
  std::unordered_map<std::uint64_t, std::size_t> counts;
  for (const auto number : held) ++counts[number];
  auto dropped = std::make_shared<std::vector<entry>>();
  checked_lock lock(mutex_);
  for (auto it = objects_.begin(); it != objects_.end();) {
    auto& owners = it->second.owners;
    std::size_t left = counts[it->first.number];
    count_off(owner, std::erase_if(owners, [&](node_id each) { return each == owner && (left == 0 || left-- == 0); }));
    if (it->second.is_free()) {
      dropped->push_back(std::move(it->second));
      it = objects_.erase(it);
    } else {
      ++it;
    }
  }
  return dropped;
}

std::uint64_t object_store::lend(object_id id, node_id from, node_id to) {
  checked_lock lock(mutex_);
  auto found = objects_.find(id);
  if (found == objects_.end()) refuse(id, "one to lend");
  if (found->second.loans.size() >= most_loans)
    throw support::refused_request("object " + to_string(id) + " of node '" + node_name_ + "' has " +
                                   std::to_string(most_loans) +
                                   " loans that nobody has taken, and there are no more; take or drop some");
  found->second.loans.push_back({++last_ticket_, from, to});
  return last_ticket_;
}

void object_store::accept_loan(object_id id, std::uint64_t ticket, node_id to) {
  checked_lock lock(mutex_);
  auto found = objects_.find(id);
  if (found == objects_.end()) refuse(id, "one that was lent");
  auto& loans = found->second.loans;
  const auto open = std::find_if(loans.begin(), loans.end(), [&](const loan& each) { return each.ticket == ticket; });
  if (open == loans.end() || open->to != to)
    throw error(errc::misuse, "object " + to_string(id) + " of node '" + node_name_ + "': the reference was " +
                                (open == loans.end() ? "accepted before, or its lender went down" : "lent to another node"));
  count(to);
  loans.erase(open);
  found->second.owners.push_back(to);
}

bool object_store::serves(node_id who) const {
  checked_lock lock(mutex_);
  return std::any_of(objects_.begin(), objects_.end(), [&](const auto& each) {
    const auto& [id, held] = each;
    const auto& owners = held.owners;
    return std::find(owners.begin(), owners.end(), who) != owners.end() ||
           std::any_of(held.loans.begin(), held.loans.end(),
                       [&](const loan& open) { return open.from == who || open.to == who; });
  });
}

std::size_t object_store::size() const {
  checked_lock lock(mutex_);
  return objects_.size();
}

}  // namespace troupe::objects
