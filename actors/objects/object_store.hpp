// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <troupe/actors/module.hpp>
#include <troupe/messages/attributes.hpp>
#include <troupe/messages/ids.hpp>

namespace troupe {

class node;

}  // namespace troupe

namespace troupe::objects {

class local_optimizer;

using module_maker = std::function<std::shared_ptr<module>(const attributes&)>;

/// The link from handles on remote objects to their node, as long as the node lives.
class node_tether {
 public:
  /// Runs `use` with the node, which lives at least that long; does nothing if the node is gone.
  template <class F>
  void with_node(F&& use) {
    std::lock_guard lock(mutex_);
    if (here_ != nullptr) use(*here_);
  }
  void tie(node& here) {
    std::lock_guard lock(mutex_);
    here_ = &here;
  }
  void cut() {
    std::lock_guard lock(mutex_);
    here_ = nullptr;
  }

 private:
  std::mutex mutex_;
  node* here_ = nullptr;
};

/// Modules and optimizers that live on a node, each on behalf of its owners, and the module types it can make. Safe to use from
/// any thread.
///   OS-1  an object is found from add until its last owner has dropped it and no loan is open. A caller that has found the
///         object may go on using it afterwards.
///   OS-2  no id is given twice, also not by two runs of a node.
///   OS-3  user code (a maker, a destructor) runs without the store's lock.
///   OS-4  a loan is taken once, by the node that it is for, and ends with either of its two nodes.
///   OS-5  there is one tether: close() cuts off every handle, also one that was made before open().
class object_store {
 public:
  object_store(node_id here, std::string node_name);
  ~object_store();

  /// Throws troupe::error (misuse) when the name is taken.
  void add_module_type(const std::string& type, module_maker make);
  /// Throws troupe::error (unknown_function) with the types there are, and what the maker throws.
  std::shared_ptr<module> make_module(const std::string& type, const attributes& values) const;

  object_id add(node_id owner, std::shared_ptr<module> object);
  object_id add(node_id owner, std::shared_ptr<local_optimizer> object);

  /// Throws troupe::error (unknown_function) for an object that is not there.
  std::shared_ptr<module> find_module(object_id id) const;
  std::shared_ptr<local_optimizer> find_optimizer(object_id id) const;

  /// Ends one ownership; returns whether the object was dropped.
  bool drop(object_id id, node_id owner);
  /// Ends the ownerships and loans of a node that went down; returns how many objects were dropped.
  std::size_t drop_owned_by(node_id owner);

  /// Opens a loan: the object stays for `to`. Returns its ticket; throws troupe::error (unknown_function) for an object that is
  /// not there.
  std::uint64_t lend(object_id id, node_id from, node_id to);
  /// Makes the loan an ownership; throws troupe::error (misuse) for a ticket that is not open for `to`.
  void accept_loan(object_id id, std::uint64_t ticket, node_id to);
  std::size_t size() const;

  node_id here() const noexcept { return here_; }
  const std::string& node_name() const noexcept { return node_name_; }

  /// Ties handles to the node; close() (a node that stops calls it first) cuts them off. Later drops of handles do nothing.
  void open(node& here);
  void close();
  const std::shared_ptr<node_tether>& tether() const noexcept { return tether_; }

 private:
  using object = std::variant<std::shared_ptr<module>, std::shared_ptr<local_optimizer>>;
  struct loan {
    std::uint64_t ticket;
    node_id from;
    node_id to;
  };
  struct entry {
    object held;
    std::vector<node_id> owners;  // a node that owns the object twice is in it twice
    std::vector<loan> loans;

    bool is_free() const noexcept { return owners.empty() && loans.empty(); }
  };

  object_id insert(node_id owner, object held);
  template <class T>
  std::shared_ptr<T> find(object_id id, const char* kind) const;
  [[noreturn]] void refuse(object_id id, const std::string& expected) const;

  const node_id here_;
  const std::string node_name_;
  const std::shared_ptr<node_tether> tether_ = std::make_shared<node_tether>();
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, module_maker> types_;
  std::unordered_map<object_id, entry> objects_;
  std::uint64_t last_number_ = 0;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace troupe::objects
