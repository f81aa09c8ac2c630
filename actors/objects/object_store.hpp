// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <troupe/actors/module.hpp>
#include <troupe/messages/attributes.hpp>
#include <troupe/messages/ids.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe {

class node;

}  // namespace troupe

namespace troupe::objects {

class local_optimizer;

using module_maker = std::function<std::shared_ptr<module>(const attributes&)>;

/// Counts the handles of remote objects that a node holds, and numbers the changes that it asks for. Handles may outlive the
/// node. Any thread may use it.
class node_tether {
 public:
  /// A change of a remote object. The object lives from before the change is asked for until nobody waits for the change.
  class change {
   public:
    change(node_tether& of, const object_id& object) : of_(of), object_(object) {
      checked_lock lock(of_.mutex_);
      number_ = ++of_.last_change_;
      auto& open = of_.changes_[object_];
      open.insert(number_);
      first_ = *open.begin();
    }
    ~change() {
      checked_lock lock(of_.mutex_);
      const auto found = of_.changes_.find(object_);
      found->second.erase(number_);
      if (found->second.empty()) of_.changes_.erase(found);
    }
    change(const change&) = delete;
    change& operator=(const change&) = delete;

    std::uint64_t number() const noexcept { return number_; }
    /// The first change of the object for which somebody waits.
    std::uint64_t first() const noexcept { return first_; }

   private:
    node_tether& of_;
    const object_id object_;
    std::uint64_t number_ = 0;
    std::uint64_t first_ = 0;
  };

  void hold(const object_id& object) {
    checked_lock lock(mutex_);
    ++handles_[object];
  }
  void let_go(const object_id& object) {
    checked_lock lock(mutex_);
    if (const auto found = handles_.find(object); found != handles_.end() && --found->second == 0) handles_.erase(found);
  }
  /// The numbers of the node's objects that have handles here; a number is listed once for each handle.
  std::vector<std::uint64_t> held_of(node_id node) const {
    checked_lock lock(mutex_);
    std::vector<std::uint64_t> result;
    for (auto i = handles_.lower_bound({node, 0}); i != handles_.end() && i->first.node == node; ++i)
      result.insert(result.end(), i->second, i->first.number);
    return result;
  }

 private:
  mutable checked_mutex mutex_;
  std::map<object_id, std::size_t> handles_ TROUPE_GUARDED_BY(mutex_);
  std::map<object_id, std::set<std::uint64_t>> changes_ TROUPE_GUARDED_BY(mutex_);  // for which somebody waits
  std::uint64_t last_change_ TROUPE_GUARDED_BY(mutex_) = 0;
};

/// The modules and optimizers that live on a node, with their owners (nodes), and the module types of the node. Any thread may
/// use it.
///   OS-1  an object is found until all owners have dropped the object and no loan of the object is open. A caller that has
///         found the object before may still use it after that.
///   OS-2  no id is given to two objects, not even by two runs of a node.
///   OS-3  user code (makers and destructors of modules) runs without the lock of the store.
///   OS-4  a loan is accepted once, by the node that the loan is for. An open loan ends when the lender or that node is gone.
///   OS-5  with each change of an object, a node names the first of its changes of this object for which it still waits. A
///         change with a lower number that comes later is refused and changes nothing. Changes of an object are made one after
///         the other.
///   OS-6  another node owns at most `most_of_one` objects, and an object has at most `most_loans` open loans: what is more is
///         refused.
class object_store {
 public:
  object_store(node_id here, std::string node_name) : here_(here), node_name_(std::move(node_name)) {}

  static constexpr std::size_t most_of_one = 65'536;  // objects that another node may own here
  static constexpr std::size_t most_loans = 4096;     // open loans of an object

  /// Registers a module type. Throws troupe::error (misuse) if the name is taken.
  void add_module_type(const std::string& type, module_maker make);
  /// Makes a module. Throws troupe::error (unknown_function) with the names of all types if there is no such type, and what the
  /// maker throws.
  std::shared_ptr<module> make_module(const std::string& type, const attributes& values) const;

  /// `type`: the registered type of the module. A module of TorchScript is of the type `script_type`.
  object_id add(node_id owner, std::shared_ptr<module> object, std::string type = {});
  object_id add(node_id owner, std::shared_ptr<local_optimizer> object);

  /// While a change_lock lives, no other change of the object begins.
  struct change_lock {
    std::shared_ptr<void> keeps = {};
    std::unique_lock<std::mutex> lock = {};
  };
  /// Begins a change with a number of the caller. `first`: the first change for which the caller waits. Throws troupe::error
  /// (misuse) if the caller has said that it does not wait for this change any more (OS-5).
  change_lock begin_change(object_id id, node_id caller, std::uint64_t number, std::uint64_t first);

  /// Finds an object. Throws troupe::error (unknown_function) if it is not in the store.
  std::shared_ptr<module> find_module(object_id id) const;
  std::shared_ptr<local_optimizer> find_optimizer(object_id id) const;

  /// The type of the module; empty if the object is no module or not in the store.
  std::string type_of(object_id id) const;
  /// Whether the node owns the object. Also true for an object that is not in the store: the caller learns so when
  /// it looks for the object.
  bool is_owned_by(object_id id, node_id owner) const;
  static constexpr const char* script_type = "TorchScript";

  /// Ends one ownership. Returns whether the object was dropped.
  bool drop(object_id id, node_id owner);
  /// Ends all ownerships and loans of a node that is gone. Returns the objects that were dropped, as settle() does.
  std::shared_ptr<void> drop_owned_by(node_id owner);
  /// Leaves the node only the ownerships of the objects with these numbers (an object that the node owns twice is listed
  /// twice). Returns the objects that were dropped; the caller frees them where long work is allowed.
  std::shared_ptr<void> settle(node_id owner, const std::vector<std::uint64_t>& held);

  /// Opens a loan: the object stays until `to` accepts it. Returns the ticket of the loan. Throws troupe::error
  /// (unknown_function) if the object is not in the store.
  std::uint64_t lend(object_id id, node_id from, node_id to);
  /// Turns a loan into an ownership of `to`. Throws troupe::error (misuse) if `to` has no open loan with this ticket.
  void accept_loan(object_id id, std::uint64_t ticket, node_id to);
  std::size_t size() const;
  /// Whether the node owns an object here, or an open loan is from the node or for it.
  bool serves(node_id who) const;

  node_id here() const noexcept { return here_; }
  const std::string& node_name() const noexcept { return node_name_; }

  const std::shared_ptr<node_tether>& tether() const noexcept { return tether_; }

 private:
  using object = std::variant<std::shared_ptr<module>, std::shared_ptr<local_optimizer>>;
  struct loan {
    std::uint64_t ticket;
    node_id from;
    node_id to;
  };
  struct changes {
    std::mutex mutex;                         // held during a change
    std::map<node_id, std::uint64_t> firsts;  // by the node that asks for changes
  };
  struct entry {
    object held;
    std::vector<node_id> owners;  // a node that owns the object twice is listed twice
    std::vector<loan> loans;
    std::string type;  // of a module
    std::shared_ptr<changes> changed;

    bool is_free() const noexcept { return owners.empty() && loans.empty(); }
  };

  object_id insert(node_id owner, object held, std::string type);
  template <class T>
  std::shared_ptr<T> find(object_id id, const char* kind) const;
  void count(node_id owner) TROUPE_REQUIRES(mutex_);
  void count_off(node_id owner, std::size_t times = 1) TROUPE_REQUIRES(mutex_);
  [[noreturn]] void refuse(object_id id, const std::string& expected) const;

  const node_id here_;
  const std::string node_name_;
  const std::shared_ptr<node_tether> tether_ = std::make_shared<node_tether>();
  mutable checked_mutex mutex_;
  std::map<std::string, module_maker> types_ TROUPE_GUARDED_BY(mutex_);
  std::unordered_map<object_id, entry> objects_ TROUPE_GUARDED_BY(mutex_);
  std::unordered_map<node_id, std::size_t> owned_ TROUPE_GUARDED_BY(mutex_);  // number of ownerships of each node
  std::uint64_t last_number_ TROUPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t last_ticket_ TROUPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::objects
