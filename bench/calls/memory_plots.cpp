// SPDX-License-Identifier: BSD-3-Clause
// What memory things take that are idle, and calls and passes.
#include <tuple>

#include <ATen/ATen.h>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include "suite.hpp"

namespace troupe::bench {

namespace {

constexpr double mebibyte = 1 << 20;
constexpr std::chrono::seconds longest_wait{20};

settings named(const std::string& name) {
  settings result;
  result.name = name;
  return result;
}

std::vector<std::unique_ptr<node>> nodes_named(const std::string& name, int count) {
  std::vector<std::unique_ptr<node>> all;
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<node>(named(name + std::to_string(i))));
  return all;
}

/// By how many MiB the memory of this process grows at most while the calls are under way, and that of the other process.
std::vector<double> peaks_of_calls(int at_once) {
  const node_pair nodes({});
  const auto x = at::ones({1 << 20}, at::kByte);
  const auto run = [&](int count) {
    std::vector<future<call_reply>> asked;
    for (int i = 0; i < count; ++i) asked.push_back(nodes.to().call("echo", {x}));
    for (const auto& each : asked) each.get();
  };
  run(1);
  const auto there = nodes.resident_there();
  const auto here = resident_bytes();
  forget_peak();
  nodes.to().call("forget_peak").get();
  run(at_once);
  const auto peak_there = get<double>(nodes.to().call("peak").get().values, "bytes");
  return {std::max(0.0, peak_bytes() - here) / mebibyte, std::max(0.0, peak_there - there) / mebibyte};
}

/// For each of `counts`: by how many bytes the memory of this process has grown since the first count of passes, and that of the other
/// process.
std::vector<double> growth_by_passes(const std::vector<int>& counts) {
  node_pair nodes({});
  const auto x = at::ones({1}).requires_grad_();
  std::vector<double> grown;
  double first_here = 0;
  double first_there = 0;
  int run = 0;
  for (const int count : counts) {
    for (; run < count; ++run) {
      context pass{nodes.here()};
      pass.backward({nodes.to().call("add", {x, x}).get().tensors.at(0)}).get();
    }
    const auto there = nodes.resident_there();
    const auto here = resident_bytes();
    if (grown.empty()) std::tie(first_here, first_there) = std::pair{here, there};
    grown.push_back(std::max(0.0, here - first_here));
    grown.push_back(std::max(0.0, there - first_there));
  }
  return grown;
}

plot memory_by_calls(bool quick) {
  plot made{"Memory at the peak, by the calls of 1 MiB that are under way",
            "Lower is better. The floor is the size of the answers, which the caller keeps.",
            {"calls at once", "", true},
            {"memory above that before", "MiB", true}};
  curve floor{"the answers, for the node that calls", role::floor};
  curve here{"the node that calls", role::troupe};
  curve there{"the node that answers", role::variant};
  for (const int count : quick ? std::vector{1} : std::vector{1, 4, 16, 64, 256, 1'024}) {
    const measured_turns found(quick ? 1 : 3, [=] { return peaks_of_calls(count); });
    floor.points.push_back({static_cast<double>(count), static_cast<double>(count)});
    here.points.push_back(point_of(count, found.all(0)));
    there.points.push_back(point_of(count, found.all(1)));
  }
  made.curves = {std::move(floor), std::move(here), std::move(there)};
  return made;
}

plot memory_by_passes(bool quick) {
  const auto counts = quick ? std::vector{10, 20} : std::vector{1'000, 2'000, 5'000, 10'000, 20'000, 50'000};
  const measured_turns found(1, [&] { return growth_by_passes(counts); });  // ten seconds, so there is no band
  const auto curve_of = [&](const char* name, role as, std::size_t first) {
    return curve_over(counts, name, as, [&found, at = first](int) mutable { return found.all(std::exchange(at, at + 2)); });
  };
  return {"Memory that passes leave behind",
          "Flat is right: each pass has a context of its own, which is released. Growth since the first point, in one run.",
          {"passes that have run", "", true},
          {"growth of the process", "bytes"},
          {curve_of("the node that starts the passes", role::troupe, 0), curve_of("the other node", role::variant, 1)}};
}

}  // namespace

std::vector<double> bytes_of_actor(int count) {
  caf::actor_system_config config;
  caf::actor_system system(config.set("scheduler.max-threads", std::size_t{1}));
  std::vector<caf::actor> all;
  all.reserve(static_cast<std::size_t>(4 * count));
  caf::scoped_actor self{system};
  const auto idle = [](caf::event_based_actor*) -> caf::behavior { return {[](int number) { return number; }}; };
  const auto add = [&](int actors, const auto& make) {
    const auto first = all.size();
    for (int i = 0; i < actors; ++i) all.push_back(make());
    for (auto i = first; i < all.size(); ++i)  // an actor has all of its memory once it has handled a message
      self->request(all[i], longest_wait, 1)
        .receive([](int) {}, [](const caf::error&) { throw std::runtime_error("an idle actor did not answer"); });
  };
  const auto bytes_of_one = [&](int actors, const auto& make) {
    add(actors / 4, make);
    const auto before = resident_bytes();
    add(actors, make);
    return (resident_bytes() - before) / actors;
  };
  const auto scheduled = bytes_of_one(count, [&] { return system.spawn(idle); });
  const auto with_thread = bytes_of_one(std::max(4, count / 40), [&] { return system.spawn<caf::detached>(idle); });
  for (const auto& each : all) caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
  return {scheduled, with_thread};
}

std::vector<double> bytes_of_node(int count) {
  const other_process server([&](int stop, const auto& tell) {
    const auto others = nodes_named("other", count);
    attributes ports;
    for (const auto& each : others) ports.insert_or_assign(each->name(), std::int64_t{each->port()});
    others.front()->functions().add("ports", [ports](call_arguments&) { return call_reply{{}, ports}; });
    tell(others.front()->port());
    wait_for(stop);
  });
  const auto port = server.told();
  auto all = nodes_named("node", std::max(1, count / 4));
  const auto alone = resident_bytes();
  for (auto& each : nodes_named("more", count)) all.push_back(std::move(each));
  const auto of_node = (resident_bytes() - alone) / count;
  auto& here = *all.front();
  const auto ports = here.peer(here.join("127.0.0.1", port)).call("ports").get().values;
  const auto connected = resident_bytes();
  for (const auto& [name, value] : ports) {
    here.join("127.0.0.1", static_cast<std::uint16_t>(std::get<std::int64_t>(value.value)));
    here.peer(name).status();
  }
  return {of_node, (resident_bytes() - connected) / std::max(1, count - 1)};
}

std::vector<plot_definition> memory_plots() {
  return plots_of_group("memory", {{"memory_by_calls", memory_by_calls}, {"memory_by_passes", memory_by_passes}});
}

}  // namespace troupe::bench
