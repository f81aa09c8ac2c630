// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/early_deletions.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include <torch/csrc/distributed/autograd/rpc_messages/rpc_with_autograd.h>
#include <torch/csrc/distributed/rpc/rref_context.h>
#include <torch/csrc/distributed/rpc/rref_proto.h>

#include "rpc/private_members.hpp"

namespace torchtroupe {

namespace rpc = torch::distributed::rpc;

namespace {

bool is_known(const rpc::RRefId& rref, const rpc::ForkId& fork) {
  auto& context = rpc::RRefContext::getInstance();
  const std::lock_guard lock(context.*member_of(mutex_of_rrefs{}));
  const auto& forks = context.*member_of(forks_of_rrefs{});
  const auto found = forks.find(rref);
  return found != forks.end() && found->second.contains(fork);
}

/// What the answer says of the RRef that its request has made; null if it says nothing of one.
std::unique_ptr<rpc::RpcCommandBase> read_made(const rpc::Message& answer) {
  if (answer.type() == rpc::MessageType::REMOTE_RET) return rpc::RemoteRet::fromMessage(answer);
  if (answer.type() != rpc::MessageType::FORWARD_AUTOGRAD_RESP) return nullptr;
  const auto wrapped = torch::distributed::autograd::RpcWithAutograd::fromMessage(answer);
  return wrapped->wrappedMessageType() == rpc::MessageType::REMOTE_RET ? std::move(*wrapped).moveWrappedRpc() : nullptr;
}

}  // namespace

void early_deletions::note(const rpc::Message& request) {
  if (request.type() != rpc::MessageType::RREF_USER_DELETE) return;
  const auto deletion = rpc::RRefUserDelete::fromMessage(request);
  const troupe::checked_lock lock(mutex_);
  are_none_ = false;  // before the look: who makes the RRef after it looks here
  if (!is_known(deletion->rrefId(), deletion->forkId()) && all_.insert(deletion->forkId()).second)
    in_order_.push_back(deletion->forkId());
  if (in_order_.size() > most) {
    all_.erase(in_order_.front());
    in_order_.pop_front();
  }
  are_none_ = all_.empty();
}

void early_deletions::carry_out(const rpc::Message& answer) {
  if (are_none_) return;
  const auto made = read_made(answer);
  if (!made) return;
  auto& which = static_cast<rpc::RemoteRet&>(*made);
  {
    const troupe::checked_lock lock(mutex_);
    if (all_.erase(which.forkId()) == 0) return;
    are_none_ = all_.empty();
  }
  rpc::RRefContext::getInstance().delForkOfOwner(which.rrefId(), which.forkId());  // objects of Python take the lock themselves
}

}  // namespace torchtroupe
