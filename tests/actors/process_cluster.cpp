// SPDX-License-Identifier: BSD-3-Clause
#include "actors/process_cluster.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/status_client.hpp>
#include <troupe/messages/inspect.hpp>

#include "actors/loopback_nodes.hpp"

namespace troupe::test {

void wait_to_be_killed() {
  while (true) pause();
}

void be_node(const char* test, settings options, std::uint16_t driver, const std::function<void(node&)>& add_functions,
             const std::function<void()>& serve) {
  const auto name = options.name;
  try {
    at::set_num_threads(1);
    node here(std::move(options));
    add_functions(here);
    here.join("127.0.0.1", driver, std::chrono::seconds(10));
    serve();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: process %s: %s\n", test, name.c_str(), problem.what());
  }
}

process_cluster::process_cluster(nursery& processes, settings of_driver, std::vector<std::string> names)
    : processes_(processes), driver_(std::move(of_driver)), names_(std::move(names)) {
  for (const auto& name : names_) pids_[name] = processes_.start(name, driver_.port());
}

process_cluster::~process_cluster() {
  for (const auto& [name, pid] : pids_) kill(pid, SIGKILL);
}

void process_cluster::signal(const std::string& name, int what) const { kill(pid(name), what); }

std::string process_cluster::meet() {
  for (const auto& name : names_) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!knows_all(name))
      if (std::chrono::steady_clock::now() > until) return name;
    address(name);
  }
  return {};
}

bool process_cluster::knows_all(const std::string& name) {
  try {
    std::size_t up = 0;
    for (const auto& each : driver_.peer(name, std::chrono::seconds(10)).status(std::chrono::seconds(1)).peers)
      if (each.up && each.transport != "not connected" && (each.who.id == driver_.id() || is_up(each.who.id))) ++up;
    return up == names_.size();
  } catch (const error&) {
    return false;
  }
}

member process_cluster::address(const std::string& name) {
  for (const auto& each : troupe::services_of(driver_).directory.members())
    if (each.name == name) addresses_[name] = each;
  return addresses_.at(name);
}

bool process_cluster::is_up(node_id id) { return troupe::services_of(driver_).directory.gateway(id) != nullptr; }

bool process_cluster::is_up(const std::string& name) { return is_up(address(name).id); }

std::string process_cluster::left_on_driver() { return becomes_idle(driver_) ? std::string{} : to_string(driver_.status()); }

std::string process_cluster::left_on(const std::string& name) {
  using namespace std::chrono_literals;
  const auto at = address(name);
  try {
    if (is_up(at.id)) {
      auto there = driver_.peer(name);
      return becomes_idle(there) ? std::string{} : to_string(there.status(1s));
    }
  } catch (const error&) {  // meanwhile the node went down in the view of the driver: the code below asks the node
  }
  try {
    status_client outside(at.host, at.port, 5s, driver_.options());
    const auto until = std::chrono::steady_clock::now() + 5s;
    auto status = outside.ask(5s);
    while (!is_idle(status) && std::chrono::steady_clock::now() < until) status = outside.ask(5s);
    return is_idle(status) ? std::string{} : to_string(status);
  } catch (const error& problem) {
    return problem.what();
  }
}

void process_cluster::replace(const std::string& name) {
  const auto id = address(name).id;
  signal(name, SIGKILL);
  while (is_up(id)) std::this_thread::yield();
  pids_[name] = processes_.start(name, driver_.port());
}

}  // namespace troupe::test
