// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/route.hpp>

#include <algorithm>
#include <iterator>

#include <troupe/actors/membership/member_table.hpp>
#include <troupe/actors/settings.hpp>

namespace troupe::membership {

namespace {

bool means_nothing(const std::string& host, const std::optional<route>& there) {
  return is_wildcard(host) || (there && !there->within_machine && is_loopback(host));
}

/// Moves the elements for which `is_wanted` is true out of the list.
template <class T, class F>
std::vector<T> take_if(std::vector<T>& all, F is_wanted) {
  const auto first = std::stable_partition(all.begin(), all.end(), [&](const T& each) { return !is_wanted(each); });
  std::vector<T> taken(std::make_move_iterator(first), std::make_move_iterator(all.end()));
  all.erase(first, all.end());
  return taken;
}

}  // namespace

std::string host_to_tell(const std::string& host, const std::optional<route>& to) {
  if (!to || !is_wildcard(host)) return host;
  const bool by_ipv4_alone = host.find(':') == std::string::npos;
  return by_ipv4_alone && !to->own_ipv4.empty() ? to->own_ipv4 : to->own;
}

std::string host_to_reach(const std::string& host, const std::optional<route>& from) {
  const bool is_of_link = host.find('%') != std::string::npos;  // the interface after the % is one of the other host
  return from && (means_nothing(host, from) || is_of_link) ? from->other : host;
}

std::string unreachable(const member& who, const std::optional<route>& from) {
  if (!from || from->within_machine || !is_loopback(who.host)) return {};
  return "node " + describe(who) + " is on another host (" + from->other +
         "), and nobody here can reach it at that loopback address; start it with --host 0.0.0.0 or --host and an address of "
         "its host, or with --advertise and the address by which others reach it";
}

std::vector<member> take_unreachable(std::vector<member>& all, const std::optional<route>& to) {
  return take_if(all, [&](const member& who) { return means_nothing(who.host, to); });
}

std::vector<member_news> take_unreachable(std::vector<member_news>& all, const std::optional<route>& to) {
  return take_if(all, [&](const member_news& each) { return means_nothing(each.who.host, to); });
}

}  // namespace troupe::membership
