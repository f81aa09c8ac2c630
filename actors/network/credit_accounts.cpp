// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/credit_accounts.hpp>

#include <algorithm>

namespace troupe::network {

bool credit_accounts::take(const account& of, std::uint64_t bytes) {
  auto& in = all_[of];
  if (!in.line.empty() || !fits(in, bytes)) return false;
  in.bytes += bytes;
  ++in.calls;
  return true;
}

credit_accounts::ticket credit_accounts::wait(const account& of, std::uint64_t bytes) {
  all_[of].line.push_back({++last_, bytes});
  return last_;
}

bool credit_accounts::take_in_turn(const account& of, ticket which) {
  auto& in = all_.at(of);
  if (in.line.front().number != which || !fits(in, in.line.front().bytes)) return false;
  in.bytes += in.line.front().bytes;
  ++in.calls;
  in.line.pop_front();
  return true;
}

void credit_accounts::give_up(const account& of, ticket which) {
  std::erase_if(all_.at(of).line, [&](const waiting& each) { return each.number == which; });
  drop_if_unused(of);
}

bool credit_accounts::give_back(const account& of, std::uint64_t bytes) {
  auto& in = all_.at(of);
  in.bytes -= bytes;
  --in.calls;
  const bool is_awaited = !in.line.empty();
  drop_if_unused(of);
  return is_awaited;
}

std::uint64_t credit_accounts::under_way(const account& of) const {
  const auto found = all_.find(of);
  return found == all_.end() ? 0 : found->second.bytes;
}

void credit_accounts::drop_if_unused(const account& of) {
  const auto& in = all_.at(of);
  if (in.calls == 0 && in.line.empty()) all_.erase(of);
}

}  // namespace troupe::network
