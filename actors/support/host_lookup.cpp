// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/host_lookup.hpp>

#include <pthread.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/machine_address.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::support {

host_lookup look_up(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  host_lookup result;
  if (problem == 0) {
    result.addresses.reset(found);
    return result;
  }
  const std::string why = problem == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(problem);
  result.problem = "the host name '" + host + "' has no address (" + why + "); is it spelled right?";
  result.temporary = problem == EAI_AGAIN;
  return result;
}

std::optional<host_lookup> read_address(const std::string& text, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(text.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return std::nullopt;
  host_lookup result;
  result.addresses.reset(found);
  return result;
}

std::string only_loopback(const std::string& host) {
  const auto found = look_up(host, 0);
  std::string first;
  for (const auto* each = found.addresses.get(); each != nullptr; each = each->ai_next) {
    sockaddr_storage address{};
    std::memcpy(&address, each->ai_addr, each->ai_addrlen);
    auto text = numeric_address(address);
    if (!is_loopback(text)) return {};
    if (first.empty()) first = std::move(text);
  }
  return first;
}

struct name_lookups::state {
  struct name {
    std::string host;
    std::uint16_t port;
    std::function<void(outcome)> done;
  };

  checked_mutex mutex;
  std::map<ticket, name> waiting TROUPE_GUARDED_BY(mutex);
  ticket last TROUPE_GUARDED_BY(mutex) = 0;
  std::size_t threads TROUPE_GUARDED_BY(mutex) = 0;
};

name_lookups::name_lookups() : state_(std::make_shared<state>()) {}

name_lookups::~name_lookups() {
  checked_lock lock(state_->mutex);
  state_->waiting.clear();
}

name_lookups::ticket name_lookups::add(std::string host, std::uint16_t port, std::function<void(outcome)> done) {
  checked_lock lock(state_->mutex);
  const auto result = ++state_->last;
  const auto at = state_->waiting.emplace(result, state::name{std::move(host), port, std::move(done)}).first;
  if (state_->threads == most_threads) return result;
  try {
    std::thread([all = state_] { run(all); }).detach();
    ++state_->threads;
  } catch (const std::system_error&) {
    if (state_->threads == 0) {
      state_->waiting.erase(at);
      throw;
    }
  }
  return result;
}

void name_lookups::give_up(ticket which) {
  checked_lock lock(state_->mutex);
  state_->waiting.erase(which);
}

void name_lookups::run(const std::shared_ptr<state>& all) {
  ::pthread_setname_np(::pthread_self(), "troupe.lookup");
  checked_unique_lock lock(all->mutex);
  while (!all->waiting.empty()) {
    const auto next = std::move(all->waiting.extract(all->waiting.begin()).mapped());
    lock.unlock();
    outcome result;
    try {
      result.found = look_up(next.host, next.port);
    } catch (...) {
      result.failure = std::current_exception();
    }
    next.done(std::move(result));
    lock.lock();
  }
  --all->threads;
}

}  // namespace troupe::support
