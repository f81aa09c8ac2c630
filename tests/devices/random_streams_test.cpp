// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <functional>
#include <memory>
#include <random>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/graph_task.hpp>

#include "support/simulated_fixture.hpp"
#include "support/simulated_lanes.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// The same program twice: on the CPU, and on streams of two devices.
struct twin_program {
  std::mt19937 random;
  std::vector<c10::Stream> streams;
  std::vector<at::Tensor> here;
  std::vector<at::Tensor> there;
  std::size_t leaves = 0;

  twin_program(unsigned seed, const std::vector<c10::Stream>& all) : random(seed), streams(all) {
    leaves = 1 + draw(3);
    for (std::size_t i = 0; i < leaves; ++i) {
      const c10::StreamGuard on(any_stream());
      here.push_back((at::rand({4}) + 0.5).requires_grad_());
      there.push_back(here.back().detach().to(simulated::device(static_cast<c10::DeviceIndex>(draw(2)))).requires_grad_());
    }
    for (std::size_t left = 3 + draw(12); left > 0; --left) grow();
    simulated::synchronize();
  }

  std::size_t draw(std::size_t below) { return random() % below; }
  const c10::Stream& any_stream() { return streams[draw(streams.size())]; }

  void grow() {
    simulated::synchronize();
    const c10::StreamGuard on(any_stream());
    const auto a = draw(here.size());
    const auto b = draw(here.size());
    const auto other = there[b].device() == there[a].device() ? there[b] : there[b].to(there[a].device());
    switch (draw(5)) {
      case 0:
        return add(at::tanh(here[a]), at::tanh(there[a]));
      case 1:
        return add(here[a] * here[b], there[a] * other);
      case 2:
        return add(here[a] * 0.5, there[a] * 0.5);
      default:
        return add(here[a] + here[b], there[a] + other);  // gives the same gradient to both
    }
  }

  void add(at::Tensor cpu, at::Tensor device) {
    here.push_back(std::move(cpu));
    there.push_back(std::move(device));
  }
};

// Calls `run`, which runs a pass, while gates block about half of the streams, drawn at random. Then queues an operator that reads
// the gradients of the leaves, on the current streams of this thread, and opens the gates in a random order. Returns what the
// operators read.
std::vector<at::Tensor> pass_with_gates(twin_program& program, const std::function<void()>& run) {
  std::vector<std::unique_ptr<simulated::gate>> gates;
  for (const auto& stream : program.streams)
    if (program.draw(2) == 0) gates.push_back(std::make_unique<simulated::gate>(stream));
  std::vector<at::Tensor> read;
  {
    const c10::StreamGuard callers(program.any_stream());
    const c10::StreamGuard on_another_device(program.any_stream());
    run();
    for (std::size_t i = 0; i < program.leaves; ++i) {
      const auto gradient = program.there[i].grad();
      read.push_back(gradient.defined() ? gradient * 1 : gradient);
    }
  }
  while (!gates.empty()) {
    simulated::settle();
    gates.erase(gates.begin() + static_cast<std::ptrdiff_t>(program.draw(gates.size())));
  }
  simulated::synchronize();
  return read;
}

// Runs a pass as a context does after gradients have come from a peer.
void deliver(const at::Tensor& sent, engine::cpu_workers* workers) {
  engine::graph_task_settings settings;
  settings.sends = {{engine::attach_send({1, {1}}, {sent}), 1}};
  settings.keep_graph = true;
  settings.workers = workers;
  engine::graph_task task(std::move(settings));
  task.deliver(0, {at::ones_like(sent)});
  task.run();
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(random_programs_on_streams_have_the_gradients_of_the_cpu, simulated::fixture) {
  const std::vector<c10::Stream> all{default_stream, stream, other, c10::Stream(c10::Stream::DEFAULT, second),
                                     simulated::new_stream(1)};
  simulated::lanes lanes;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    const bool with_lanes = seed % 2 == 0;
    twin_program program(seed, all);
    const auto root = program.here.back().sum();
    const auto twin = program.there.back().sum();
    if (!root.requires_grad()) continue;
    for (int pass = 1; pass <= 2; ++pass) {  // the second pass adds to the gradients of the first
      troupe::backward({root}, {}, true);
      const auto read = pass_with_gates(program, [&] {
        if (pass == 1)
          troupe::backward({twin}, {}, {.keep_graph = true, .workers = with_lanes ? &lanes : nullptr});
        else
          deliver(program.there.back(), with_lanes ? &lanes : nullptr);
      });
      for (std::size_t i = 0; i < program.leaves; ++i) {
        const auto& expected = program.here[i].grad();
        BOOST_TEST_REQUIRE(expected.defined() == read[i].defined(), "seed " << seed << ", leaf " << i);
        if (expected.defined()) {
          BOOST_TEST(at::equal(read[i].cpu(), expected), "seed " << seed << ", pass " << pass << ", leaf " << i << ": expected "
                                                                 << expected << ", got " << read[i].cpu());
        }
      }
    }
  }
}
