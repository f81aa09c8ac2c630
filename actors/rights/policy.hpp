// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/rights/policy_test.cpp, tests/actors/gate/rights_of_roles_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <troupe/messages/mutex.hpp>

namespace troupe::rights {

struct name_list {
  bool has_all = false;
  std::set<std::string> names;

  bool has(const std::string& name) const { return has_all || names.contains(name); }
};

/// What the nodes of a role may do with the node that has the policy. A right that the policy does not list is denied.
struct role_rights {
  enum class weights : std::uint8_t { none, read, write };

  name_list call;                            // functions of the user's program
  std::map<std::string, name_list> modules;  // types they may make, with the methods they may call; "*": all other types
  weights of_weights = weights::none;  // `read`: parameters, buffers and gradients of their modules; `write`: optimizers too
  bool save = false;                   // checkpoints, below the node's data folder
  bool scripts = false;                // TorchScript, which is code
  bool actors = false;                 // find and use actors that the program has published
  bool all_contexts = false;           // release and abort contexts that others have opened, too
  bool trace = false;                  // read the spans of the node's trace, and add spans to it
  bool status = false;
  bool members = false;  // whether this node believes what they say about other nodes

  /// Whether nodes of the role may use modules of the type at all.
  bool may_make(const std::string& type) const { return methods_of(type) != nullptr; }
  bool may_call(const std::string& type, const std::string& method) const;

 private:
  const name_list* methods_of(const std::string& type) const;
};

/// Says what the roles of a cluster may do. The file is JSON:
///
///   {"roles": {"features": {"call": ["forward"]}, "trainer": {"modules": {"Stage": ["*"]}, "weights": "write"}}}
///
///   PY-1  a role that the file does not name may do nothing but be a member.
///   PY-2  a file with a mistake is refused as a whole. The error names the position in the file, what was expected and what
///         came.
class policy {
 public:
  /// Throws std::runtime_error (PY-2).
  static policy read(const std::string& path) { return parse(text_of(path), path); }
  /// Throws std::runtime_error if there is no such file, or if it can't be read.
  static std::string text_of(const std::string& path);
  /// `origin`: the name of the file, for errors.
  static policy parse(const std::string& text, const std::string& origin);

  const role_rights& of(const std::string& role) const;
  /// The roles that may save checkpoints, in alphabetical order.
  std::vector<std::string> roles_that_save() const;

 private:
  std::map<std::string, role_rights> roles_;
};

/// The policy of a node: a file, which may be read again while the node runs. Any thread may use it.
///   PB-1  a file that can't be read, or has a mistake, does not change the policy.
///   PB-2  once read_again() has returned, now() gives the new policy on every thread. A thread that has called now() before
///         may still decide by the old policy.
///   PB-3  a policy that now() has returned never changes, and is valid as long as this object. So now() takes one atomic load,
///         no lock and no reference count. The policy of each text that the file has had stays in memory.
class policy_file {
 public:
  /// Throws std::runtime_error (PY-2).
  explicit policy_file(std::string path) : path_(std::move(path)) { read_again(); }

  const policy& now() const noexcept { return *now_.load(std::memory_order_acquire); }
  /// Reads the file again. Returns whether another policy counts from now on. Throws std::runtime_error (PB-1).
  bool read_again();

 private:
  const std::string path_;
  checked_mutex mutex_;
  std::map<std::string, policy> read_ TROUPE_GUARDED_BY(mutex_);  // by their texts
  std::atomic<const policy*> now_{nullptr};                       // changes under the mutex
};

}  // namespace troupe::rights
