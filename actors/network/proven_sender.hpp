// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/forged_senders_test.cpp
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <troupe/actors/gate/introduced_nodes.hpp>
#include <troupe/actors/rights/policy_file.hpp>
#include <troupe/messages/sender_check.hpp>

namespace troupe::network {

/// The node at the other end of a connection with certificates. Its messages say who they are from, and have to say the truth: its
/// name is that of the certificate, and its id is the one with which it introduced itself, by this connection or by another one.
class proven_sender final : public sender_check {
 public:
  /// `policy`: what the roles of the cluster may do, for as long as this object lives; null: nobody has said it.
  proven_sender(std::shared_ptr<gate::introduced_nodes> all, certificates::identity who, const rights::policy_file* policy)
      : all_(std::move(all)), who_(std::move(who)), policy_(policy) {}

  bool introduces(const std::string& name, node_id id) override { return name == who_.node && all_->introduce(who_, id); }
  answer is(node_id id) const override {
    const auto whose = all_->find(id);
    return !whose ? answer::not_yet : whose->node == who_.node ? answer::yes : answer::no;
  }
  bool is_named(const std::string& name) const override { return name == who_.node; }
  std::string who() const override { return "node '" + who_.node + "' (role " + who_.role + ")"; }
  bool may_end(const context_id& context) const override {
    return policy_ == nullptr || policy_->now().of(who_.role).all_contexts || is(context.node) == answer::yes;
  }

 private:
  const std::shared_ptr<gate::introduced_nodes> all_;
  const certificates::identity who_;
  const rights::policy_file* const policy_;
};

}  // namespace troupe::network
