// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/nodes/node_parts.hpp>

#include <exception>

#include <troupe/actors/future.hpp>
#include <troupe/actors/nodes/serve_request.hpp>

namespace troupe::nodes {

void published_actors::add(std::string name, caf::strong_actor_ptr actor) {
  std::lock_guard lock(mutex_);
  all_.insert_or_assign(std::move(name), std::move(actor));
}

caf::strong_actor_ptr published_actors::find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : found->second;
}

std::vector<caf::strong_actor_ptr> published_actors::stop() {
  std::lock_guard lock(mutex_);
  std::vector<caf::strong_actor_ptr> result;
  for (auto& [name, actor] : std::exchange(all_, {})) result.push_back(std::move(actor));
  return result;
}

void peer_news_handler::set(handler notify) {
  std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
}

void peer_news_handler::tell(const std::string& peer, const std::string& reason) const {
  handler notify;
  {
    std::lock_guard lock(mutex_);
    notify = notify_;
  }
  if (!notify) return;
  const detail::continuation_scope no_waiting;
  try {
    notify(peer, reason);
  } catch (const std::exception& problem) {
    log_.error("nodes", [&] { return std::string("the handler of ") + name_ + " threw: " + problem.what(); });
  }
}

node_parts::node_parts(node& handle, settings options, std::function<void()> tidy)
    : data(options.data_dir),
      services(std::move(options), std::move(tidy)),
      objects(services.self.id(), services.self.name()),
      workers({handle, services,
               [this](const request& what, call_arguments& arguments) { return serve_request(*this, what, arguments); }}) {}

}  // namespace troupe::nodes
