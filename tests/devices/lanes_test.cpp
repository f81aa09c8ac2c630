// SPDX-License-Identifier: BSD-3-Clause
// Passes whose functions run on lanes of the CPU and of two accelerators.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <boost/test/unit_test.hpp>

#include <troupe/devices/streams.hpp>
#include <troupe/engine/backward.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/roots.hpp>

#include "engine/notifying_hook.hpp"
#include "support/nested_pass.hpp"
#include "support/simulated_fixture.hpp"
#include "support/simulated_lanes.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// A leaf on each device and on the CPU, and functions of one kind over each leaf, all independent until their sum.
struct branches {
  branches(const c10::Device& first, const c10::Device& second, const std::function<void(c10::Device)>& notify = {}) {
    std::vector<at::Tensor> parts;
    for (const c10::Device device : {c10::Device(at::kCPU), first, second}) {
      leaves.push_back(at::ones({4}, at::device(device)).requires_grad_());
      for (int i = 0; i < 4; ++i) {
        const auto part = leaves.back() * (i + 1.5);
        if (notify) watch(part, [=] { notify(device); });
        parts.push_back(part.sum().cpu());
      }
    }
    root = at::stack(parts).sum();
    simulated::synchronize();
  }

  std::vector<float> gradients() const {
    simulated::synchronize();
    std::vector<float> result;
    for (const auto& leaf : leaves) result.push_back(leaf.grad().defined() ? leaf.grad().cpu()[3].item<float>() : -1);
    return result;
  }

  std::vector<at::Tensor> leaves;
  at::Tensor root;
};

const std::vector<float> expected{12, 12, 12};  // 1.5 + 2.5 + 3.5 + 4.5

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lanes_of_devices, simulated::fixture)

/// Lets a function that runs on the thread of the pass wait until a worker has begun a function of the same device. A pass whose
/// functions did not go to lanes would never end.
class meeting {
 public:
  void operator()(c10::Device device) {
    std::unique_lock lock(mutex_);
    if (std::this_thread::get_id() != here_) {
      workers_[device.str()].insert(std::this_thread::get_id());
      met_.notify_all();
    }
    met_.wait(lock, [&] { return !workers_[device.str()].empty(); });
  }

  /// By device, the threads that ran functions of this device, without the thread of the pass.
  const std::map<std::string, std::set<std::thread::id>>& workers() const { return workers_; }

 private:
  const std::thread::id here_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable met_;
  std::map<std::string, std::set<std::thread::id>> workers_;
};

BOOST_AUTO_TEST_CASE(each_device_has_one_worker_for_its_functions) {
  simulated::lanes lanes;
  backward({branches(first, second).root}, {}, {.workers = &lanes});  // from now on it is known how long the functions take
  meeting of;
  for (int round = 0; round < 20; ++round) {
    const branches graph(first, second, std::ref(of));
    backward({graph.root}, {}, {.workers = &lanes});
    BOOST_TEST(graph.gradients() == expected);
  }
  std::set<std::thread::id> all;
  BOOST_TEST(of.workers().size() == 3u);
  for (const auto& [device, threads] : of.workers()) {
    BOOST_TEST(threads.size() == 1u, device);
    all.insert(threads.begin(), threads.end());
  }
  BOOST_TEST(all.size() == 3u);
}

// The thread of the pass is in a long function of the CPU. Meanwhile the lane of a device gets one function after the other.
BOOST_AUTO_TEST_CASE(a_device_goes_on_while_the_thread_of_the_pass_is_busy) {
  const auto leaf = at::ones({4}, at::device(first)).requires_grad_();
  const auto beside = at::ones({64}).requires_grad_();
  std::promise<void> ends;
  const auto ended = ends.get_future().share();
  const auto run = [&](bool meets, engine::cpu_workers* workers) {
    std::vector<at::Tensor> parts;
    for (int i = 0; i < 4; ++i) {
      parts.push_back(at::exp(beside).sum());
      // Neither the thread of the pass nor the worker of the CPU is free until the device has run all of its functions.
      if (meets) watch(parts.back(), [&] { ended.wait(); });
    }
    at::Tensor chain = at::tanh(leaf);
    if (meets) watch(chain, [&] { ends.set_value(); });  // the last function of the device
    for (int i = 0; i < 10; ++i) chain = at::tanh(chain);
    parts.push_back(chain.sum().cpu());  // the function that was recorded last runs first
    simulated::synchronize();
    backward({at::stack(parts).sum()}, {}, {.workers = workers});
    simulated::synchronize();
    return leaf.grad().cpu().clone();
  };
  simulated::lanes lanes;
  run(false, &lanes);
  const auto first_sum = run(false, nullptr);
  const auto twice = run(true, &lanes);
  BOOST_TEST(at::allclose(twice, first_sum * 1.5));
}

// JB-1: a function without a stream of its own finds the caller's streams and device.
BOOST_AUTO_TEST_CASE(functions_find_the_callers_streams_and_the_workers_keep_theirs) {
  simulated::lanes lanes;
  backward({branches(first, second).root}, {}, {.workers = &lanes});
  const c10::impl::VirtualGuardImpl accelerator(at::kPrivateUse1);
  const auto callers = simulated::new_stream(1);
  meeting of;
  std::atomic<int> wrong{0};
  const branches graph(first, second, [&](c10::Device device) {
    of(device);
    if (device.is_cpu()) wrong += accelerator.getStream(second) == callers && accelerator.getDevice() == second ? 0 : 1;
  });
  {
    const c10::StreamGuard guard(callers);
    backward({graph.root}, {}, {.workers = &lanes});
  }
  BOOST_TEST(graph.gradients() == expected);
  BOOST_TEST(wrong == 0);
  std::promise<c10::Stream> of_worker;
  lanes.post([&] { of_worker.set_value(accelerator.getStream(second)); });
  BOOST_TEST((of_worker.get_future().get() == c10::Stream(c10::Stream::DEFAULT, second)));
}

// A function of a device runs a pass over functions of the same device, and so on: the one worker of the lane runs them all.
BOOST_AUTO_TEST_CASE(functions_may_run_passes_on_their_own_lane) {
  struct value {
    static at::Tensor of(const at::Tensor& x, const std::function<at::Tensor(const at::Tensor&)>& next) {
      return next(x) + next(x);
    }
  };
  simulated::lanes lanes;
  for (int round = 0; round < 3; ++round) {
    const auto x = at::ones({2}, at::device(first)).requires_grad_();
    const auto y = nested_pass<value>::on(x, 4, &lanes) + nested_pass<value>::on(x, 4, &lanes);
    troupe::backward({y.sum()}, {}, {.workers = &lanes});
    simulated::synchronize();
    BOOST_TEST(x.grad().cpu()[1].item<float>() == 64);
  }
}

/// Says that the function that made `tensor` takes long.
void teach(engine::cpu_workers& workers, const at::Tensor& tensor) {
  workers.costs().note(engine::cost_book::kind_of(*tensor.grad_fn(), {at::ones_like(tensor)}), 1'000'000'000);
  workers.busy() = true;
}

// On the device a small function stands between two large ones. The thread of the pass is in a function that ends only after all of them.
BOOST_AUTO_TEST_CASE(a_small_function_of_a_device_does_not_wait_for_a_thread_that_is_busy) {
  simulated::lanes lanes(1'000'000);
  std::promise<void> is_over;                                          // of the pass
  lanes.post([over = is_over.get_future().share()] { over.wait(); });  // so the thread of the pass runs the function of the CPU
  const auto x = at::ones({2}).requires_grad_();
  const auto y = at::ones({2}, at::device(first)).requires_grad_();
  const auto of_cpu = x * 2;
  const auto last = y * 3;
  const auto small = last.sin();
  const auto large = small.exp();
  for (const auto& each : {of_cpu, last, large}) teach(lanes, each);
  const auto root = of_cpu.sum() + large.sum().cpu();
  std::promise<void> begins;
  std::promise<void> ends;
  auto has_begun = begins.get_future();
  auto has_ended = ends.get_future();
  bool in_time = true;
  const auto wait_for = [&](std::future<void>& what) {
    in_time = what.wait_for(std::chrono::seconds(60)) == std::future_status::ready && in_time;
  };
  watch(large, [&] { wait_for(has_begun); });
  watch(last, [&] { ends.set_value(); });
  watch(of_cpu, [&] {
    begins.set_value();
    wait_for(has_ended);
  });
  simulated::synchronize();
  troupe::backward({root}, {}, {.workers = &lanes});
  is_over.set_value();
  BOOST_TEST(in_time);
}

BOOST_AUTO_TEST_CASE(an_error_of_a_function_ends_the_pass_and_the_lanes_go_on) {
  simulated::lanes lanes;
  for (int round = 0; round < 20; ++round) {
    for (const c10::Device guilty : {c10::Device(at::kCPU), first, second}) {
      const branches graph(first, second, [&](c10::Device device) {
        if (device == guilty) throw std::runtime_error("of the test");
      });
      BOOST_CHECK_THROW(backward({graph.root}, {}, {.keep_graph = true, .workers = &lanes}), std::runtime_error);
    }
    const branches whole(first, second);
    backward({whole.root}, {}, {.workers = &lanes});
    BOOST_TEST(whole.gradients() == expected);
  }
}

// SO-7: the lane has queued more on the stream when the outputs are handed on. The consumer waits for the outputs alone.
BOOST_AUTO_TEST_CASE(a_consumer_waits_only_for_what_it_uses) {
  const auto leaf = at::ones({3}, at::device(first)).requires_grad_();
  const auto on = [](const c10::Stream& where, const std::function<at::Tensor()>& make) {
    const c10::StreamGuard guard(where);
    auto result = make();
    simulated::synchronize();
    return result;
  };
  const auto made = on(stream, [&] { return leaf * 2; });
  const auto root = on(other, [&] { return made * 3; });
  const engine::plan graph(engine::root_edges({root}), {}, {}, false);
  devices::streams order(graph, at::kPrivateUse1);
  order.begin();
  const auto& producer = graph.vertices.at(graph.find(*root.grad_fn()));
  const auto& consumer = graph.vertices.at(graph.find(*made.grad_fn()));
  std::vector<at::Tensor> outputs;
  auto events = order.run_elsewhere(producer, outputs, [&] { outputs.push_back(at::ones({3}, at::device(first)) * 5); });
  simulated::gate late(other);  // what the lane runs next
  at::Tensor buffer;
  order.enter_after(producer, std::move(events));
  order.add(consumer, consumer.first_slot, buffer, std::move(outputs[0]));
  order.leave();
  order.enter(consumer);
  const auto used = buffer * 1;
  order.leave();
  simulated::settle();
  const c10::StreamGuard guard(stream);
  BOOST_TEST(used.cpu()[0].item<float>() == 5);  // waits for `stream` alone
  late.open();
  order.end();
}

// SO-5: the memory of the gradient goes back to `stream`, which made the gradient, before the caller's stream has read it.
BOOST_AUTO_TEST_CASE(a_gradient_may_end_before_the_callers_stream_has_read_it) {
  simulated::lanes lanes;
  at::Tensor leaf;
  at::Tensor root;
  {
    const c10::StreamGuard guard(stream);
    leaf = at::ones({3}, at::device(first)).requires_grad_();
    root = (leaf * 6).sum();
  }
  simulated::synchronize();
  const c10::StreamGuard callers(other);
  backward({root}, {}, {.workers = &lanes});
  simulated::gate late(other);
  const auto read = leaf.grad() * 1;
  leaf.mutable_grad().reset();
  simulated::settle();
  late.open();
  BOOST_TEST(read.cpu()[2].item<float>() == 6);
}

BOOST_AUTO_TEST_SUITE_END()
