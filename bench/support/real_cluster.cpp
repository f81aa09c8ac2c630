// SPDX-License-Identifier: BSD-3-Clause
#include "real_cluster.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>

#include <ATen/ATen.h>

#include <troupe/troupe.hpp>

#include "runs.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds longest_wait{30};

/// Arguments of all functions.
struct step {
  std::int64_t here;   // the number of the node
  std::int64_t nodes;  // of the pass
  std::int64_t fan;    // of a tree
  std::int64_t sleep_us;
  std::int64_t run;  // the number of the pass

  attributes to(std::int64_t node) const {
    return {{"here", node}, {"nodes", nodes}, {"fan", fan}, {"sleep_us", sleep_us}, {"run", run}};
  }
  static step of(const attributes& from) {
    return {get<std::int64_t>(from, "here"), get<std::int64_t>(from, "nodes"), get<std::int64_t>(from, "fan"),
            get<std::int64_t>(from, "sleep_us"), get<std::int64_t>(from, "run")};
  }
};

std::string name_of(std::int64_t node) { return "n" + std::to_string(node); }

/// A function of the model: it sleeps when all of its gradient has come.
at::Tensor slow(const at::Tensor& x, const step& how) {
  auto y = x * 1.0;
  y.register_hook([us = how.sleep_us](const at::Tensor& gradient) {
    if (us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
    return gradient;
  });
  return y;
}

future<call_reply> ask(node& here, std::int64_t to, const std::string& function, const at::Tensor& x, const step& how) {
  return here.peer(name_of(to)).call(function, {x}, how.to(to));
}

at::Tensor sum_of(std::vector<future<call_reply>>& asked, at::Tensor sum = {}) {
  for (auto& each : asked) {
    const auto y = each.get().tensors.at(0);
    sum = sum.defined() ? sum + y : y;
  }
  return sum;
}

/// pipeline_shape and tree_shape: the node computes, calls others, and computes with what they return. `mine`: how this node computes.
at::Tensor call_and_return(node& here, const std::string& function, const at::Tensor& x, const step& how, const step& mine) {
  const auto begin = slow(x, mine);
  std::vector<future<call_reply>> asked;
  const auto first = how.here * how.fan + 1;
  for (auto to = first; to < std::min(first + how.fan, how.nodes); ++to) asked.push_back(ask(here, to, function, begin, how));
  return asked.empty() ? begin : slow(sum_of(asked), mine);
}

/// The parts that come for the expert of a node. The last call computes for all.
class expert {
 public:
  at::Tensor add(const at::Tensor& part, const step& how) {
    std::unique_lock lock(mutex_);
    auto& mine = runs_[how.run];
    if (!mine) mine = std::make_shared<gathering>();
    const auto run = mine;
    run->parts.push_back(part);
    if (static_cast<std::int64_t>(run->parts.size()) == how.nodes - 1) {
      runs_.erase(how.run);
      auto sum = run->parts.front();
      for (std::size_t i = 1; i < run->parts.size(); ++i) sum = sum + run->parts[i];
      run->result.set_value(slow(sum, how));
    }
    auto result = run->shared;
    lock.unlock();
    if (result.wait_for(longest_wait) != std::future_status::ready)
      throw std::runtime_error("the parts for an expert did not come within 30 s");
    return result.get();
  }

 private:
  struct gathering {
    std::vector<at::Tensor> parts;
    std::promise<at::Tensor> result;
    std::shared_future<at::Tensor> shared = result.get_future().share();
  };
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<gathering>> runs_;
};

/// all_to_all_shape: a part goes to the expert of each node, and the node combines what comes back.
at::Tensor exchange(node& here, expert& mine, const at::Tensor& x, const step& how) {
  const auto part = slow(x, how);
  std::vector<future<call_reply>> asked;
  for (std::int64_t to = 1; to < how.nodes; ++to)
    if (to != how.here) asked.push_back(ask(here, to, "expert", part, how));
  const auto own = mine.add(part, how);
  return slow(sum_of(asked, own), how);
}

/// Functions that all nodes have but node 0.
void add_functions(node& here, expert& mine) {
  for (const std::string name : {"pipeline", "tree", "parameter_server"})
    here.functions().add(name, [name](call_arguments& arguments) {
      const auto how = step::of(arguments.values);
      return call_reply{{call_and_return(arguments.here, name, arguments.tensors.at(0), how, how)}};
    });
  here.functions().add(
    "stage", [](call_arguments& arguments) { return call_reply{{slow(arguments.tensors.at(0), step::of(arguments.values))}}; });
  here.functions().add("ring", [](call_arguments& arguments) {
    const auto how = step::of(arguments.values);
    ask(arguments.here, how.here - 1, how.here == 1 ? "arrive" : "ring", slow(arguments.tensors.at(0), how), how).get();
    return call_reply{};
  });
  here.functions().add("expert", [&mine](call_arguments& arguments) {
    return call_reply{{mine.add(arguments.tensors.at(0), step::of(arguments.values))}};
  });
  here.functions().add("all_to_all", [&mine](call_arguments& arguments) {
    return call_reply{{exchange(arguments.here, mine, arguments.tensors.at(0), step::of(arguments.values))}};
  });
  here.functions().add("peers", [](call_arguments& arguments) {
    return call_reply{{}, {{"count", static_cast<std::int64_t>(arguments.here.peers().size())}}};
  });
}

/// Calls that wait for other calls of the same node take workers.
settings with_workers(settings own, std::size_t nodes) {
  own.workers = 4 * nodes;
  return own;
}

settings settings_of(std::size_t number, std::size_t nodes) {
  settings result;
  result.name = name_of(static_cast<std::int64_t>(number));
  return with_workers(std::move(result), nodes);
}

}  // namespace

void real_cluster::serve(settings own, const std::function<void(std::uint16_t)>& tell_port,
                         const std::function<void(node&)>& wait) {
  expert mine;
  node here{std::move(own)};
  add_functions(here, mine);
  tell_port(here.port());
  wait(here);
}

real_cluster::real_cluster(std::size_t nodes) {
  for (std::size_t i = 1; i < nodes; ++i)
    others_.push_back(std::make_unique<other_process>(
      [i, nodes](int stop, const auto& tell) { serve(settings_of(i, nodes), tell, [stop](node&) { wait_for(stop); }); }));
  std::vector<std::string> addresses;
  for (const auto& each : others_) addresses.push_back("127.0.0.1:" + std::to_string(each->told()));
  for (std::size_t i = 0; i < others_.size(); ++i) others_[i]->watch(name_of(static_cast<std::int64_t>(i) + 1), [] {});
  start(settings_of(0, nodes), addresses);
}

/// A node of this process.
struct real_cluster::neighbour {
  explicit neighbour(settings own) : here(std::move(own)) { add_functions(here, mine); }
  expert mine;
  node here;
};

std::unique_ptr<real_cluster> real_cluster::in_this_process(std::size_t nodes) {
  std::unique_ptr<real_cluster> made(new real_cluster);
  std::vector<std::string> addresses;
  const auto patient = [nodes](std::size_t number) {
    auto own = settings_of(number, nodes);
    own.heartbeat = std::chrono::seconds(30);  // calls of so many nodes keep the cores of one process busy for long
    return own;
  };
  for (std::size_t i = 1; i < nodes; ++i) {
    made->neighbours_.push_back(std::make_unique<neighbour>(patient(i)));
    addresses.push_back("127.0.0.1:" + std::to_string(made->neighbours_.back()->here.port()));
  }
  made->start(patient(0), addresses);
  return made;
}

real_cluster::real_cluster() = default;

real_cluster::real_cluster(settings own, const std::vector<std::string>& others) {
  start(with_workers(std::move(own), others.size() + 1), others);
}

void real_cluster::start(settings own, const std::vector<std::string>& others) {
  nodes_ = others.size() + 1;
  here_ = std::make_unique<node>(std::move(own));
  here_->functions().add("arrive", [this](call_arguments& arguments) {
    arrived_.set_value(arguments.tensors.at(0));
    return call_reply{};
  });
  for (const auto& each : others) {
    const auto [host, port] = parse_address(each);
    here_->join(host, port);
  }
  const auto end = clock::now() + longest_wait;
  for (std::size_t i = 1; i < nodes_; ++i) {
    const auto name = name_of(static_cast<std::int64_t>(i));
    while (get<std::int64_t>(here_->peer(name).call("peers").get().values, "count") + 1 < static_cast<std::int64_t>(nodes_)) {
      if (clock::now() > end) throw std::runtime_error("node " + name + " has not met all others within 30 s");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

real_cluster::~real_cluster() = default;

double real_cluster::pass_ms(const std::string& shape, std::size_t nodes, std::chrono::microseconds function,
                             std::optional<std::chrono::microseconds> of_node_0) {
  static std::int64_t runs = 0;
  const auto count = static_cast<std::int64_t>(nodes);
  const step how{0, count, shape == "pipeline" ? 1 : shape == "tree" ? 8 : count, function.count(), ++runs};
  const auto x = at::ones({1}).requires_grad_();
  context pass(*here_);
  at::Tensor end;
  double expected = 1;
  if (shape == "pipeline" || shape == "tree" || shape == "parameter_server") {
    auto mine = how;
    mine.sleep_us = of_node_0.value_or(function).count();
    end = call_and_return(*here_, shape, x, how, mine);
    std::int64_t leaves = 0;
    for (std::int64_t node = 0; node < count; ++node) leaves += node * how.fan + 1 >= count ? 1 : 0;
    expected = static_cast<double>(leaves);
  } else if (shape == "ring") {
    arrived_ = {};
    auto comes = arrived_.get_future();
    auto done = ask(*here_, count - 1, "ring", slow(x, how), how);
    done.get();  // then it has come
    end = slow(comes.get(), how);
  } else if (shape == "all_to_all") {
    const auto begin = slow(x, how);
    std::vector<future<call_reply>> asked;
    for (std::int64_t to = 1; to < count; ++to) asked.push_back(ask(*here_, to, shape, begin, how));
    end = slow(sum_of(asked), how);
    expected = static_cast<double>((count - 1) * (count - 1) * (count - 1));
  } else {
    throw std::invalid_argument("there is no real pass over the shape '" + shape + "'");
  }
  return backward_ms(pass, end, x, expected, "over the shape '" + shape + "' of " + std::to_string(nodes) + " nodes");
}

double real_cluster::pipeline_ms(std::int64_t batches, std::chrono::microseconds function, bool own_contexts) {
  const step how{0, static_cast<std::int64_t>(nodes_), 1, function.count(), 0};
  const auto x = at::ones({1}).requires_grad_();
  const auto forward = [&] {
    auto y = x;
    for (std::int64_t node = 1; node < how.nodes; ++node) y = ask(*here_, node, "stage", y, how).get().tensors.at(0);
    return y;
  };
  if (!own_contexts) {
    context pass(*here_);
    at::Tensor sum;
    for (std::int64_t i = 0; i < batches; ++i) sum = sum.defined() ? sum + forward() : forward();
    return backward_ms(pass, sum, x, static_cast<double>(batches), "over micro-batches");
  }
  std::vector<std::unique_ptr<context>> contexts;
  std::vector<at::Tensor> roots;
  for (std::int64_t i = 0; i < batches; ++i)
    std::thread([&] {  // contexts of one thread do not nest
      contexts.push_back(std::make_unique<context>(*here_));
      roots.push_back(forward().sum());
    })
      .join();
  std::vector<future<done>> passes;
  const auto begun = clock::now();
  for (std::size_t i = 0; i < contexts.size(); ++i) passes.push_back(contexts[i]->backward({roots[i]}));
  for (const auto& each : passes) each.get();
  const auto took = std::chrono::duration<double, std::milli>(clock::now() - begun).count();
  for (const auto& each : contexts) check(each->gradient(x), 1, "over a micro-batch");
  return took;
}

double real_cluster::busy_pass_ms(std::int64_t calls) {
  const step how{0, 2, 1, 0, 0};
  const auto x = at::ones({1}).requires_grad_();
  context pass(*here_);
  const auto begin = slow(x, how);
  std::vector<future<call_reply>> asked;
  for (std::int64_t i = 0; i < calls; ++i) asked.push_back(ask(*here_, 1, "pipeline", begin, how));
  return backward_ms(pass, slow(sum_of(asked), how), x, static_cast<double>(calls), "over " + std::to_string(calls) + " calls");
}

double real_cluster::backward_ms(context& pass, const at::Tensor& end, const at::Tensor& x, double expected,
                                 const std::string& what) {
  const auto root = end.sum();
  const auto begun = clock::now();
  pass.backward({root}).get();
  const auto took = std::chrono::duration<double, std::milli>(clock::now() - begun).count();
  check(pass.gradient(x), expected, what);
  return took;
}

void real_cluster::check(const at::Tensor& gradient, double expected, const std::string& what) {
  if (!gradient.defined() || gradient.item<double>() != expected)
    throw std::runtime_error("a real pass " + what + ": expected the gradient " + std::to_string(expected) + ", got " +
                             (gradient.defined() ? std::to_string(gradient.item<double>()) : "none"));
}

double real_cluster::slept_ms(std::chrono::microseconds wanted) {
  std::vector<double> all;
  for (int i = 0; i < 51; ++i) {
    const auto begun = clock::now();
    std::this_thread::sleep_for(wanted);
    all.push_back(std::chrono::duration<double, std::milli>(clock::now() - begun).count());
  }
  return middle(std::move(all));
}

}  // namespace troupe::bench
