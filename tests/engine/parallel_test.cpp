// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/backward.hpp>
#include <troupe/engine/cpu_workers.hpp>
#include <troupe/engine/current_pass.hpp>
#include <troupe/engine/torch_compat.hpp>

#include "engine/notifying_hook.hpp"
#include "engine/oracle.hpp"
#include "engine/random_program.hpp"
#include "engine/threads.hpp"

using namespace troupe::engine;
using namespace troupe::test;
using torch::autograd::variable_list;

BOOST_AUTO_TEST_SUITE(parallel_passes)

namespace {

// Keeps posted work until the test asks for it, as if no worker were free.
class nobody final : public cpu_workers {
 public:
  explicit nobody(std::int64_t grain = 0) : cpu_workers(3, grain) {}
  void post(std::function<void()> work) override { waiting.push_back(std::move(work)); }
  std::vector<std::function<void()>> waiting;
};

std::vector<at::Tensor> pass(std::uint64_t seed, cpu_workers* workers) {
  program_options options;
  options.steps = 40;
  const random_program program(seed, options);
  try {
    troupe::backward(program.roots, program.root_gradients, {.workers = workers});
  } catch (const std::exception&) {
    return {};  // a failing program may leave gradients; which ones depends on timing
  }
  return gradients_of(program.leaves);
}

// Runs a random kind of pass: grad(), backward() with some inputs, or two passes over one graph.
std::vector<at::Tensor> pass_of_any_kind(std::uint64_t seed, cpu_workers* workers) {
  program_options options;
  options.steps = 60;
  const random_program program(seed, options);
  std::mt19937_64 random(seed);
  variable_list inputs = program.leaves;  // a pass that leaves out outputs is serial
  if (random() % 4 == 0) inputs.resize(1);
  for (const at::Tensor& each : program.values)
    if (random() % 3 == 0) inputs.push_back(each);
  variable_list found;
  try {
    switch (random() % 3) {
      case 0:
        found = troupe::grad(program.roots, inputs, program.root_gradients, {.allow_unused = true, .workers = workers});
        break;
      case 1:
        troupe::backward(program.roots, program.root_gradients, {.inputs = inputs, .workers = workers});
        break;
      default:
        troupe::backward(program.roots, program.root_gradients, {.keep_graph = true, .workers = workers});
        troupe::backward(program.roots, program.root_gradients, {.workers = workers});
    }
  } catch (const std::exception&) {
    return {};
  }
  const variable_list gradients = gradients_of(program.leaves);
  found.insert(found.end(), gradients.begin(), gradients.end());
  return found;
}

// `width` functions of one kind whose gradients meet in a sum. Each function calls `notify` when it runs.
struct fan {
  explicit fan(int width, const std::function<void(int)>& notify = {}) {
    for (int i = 0; i < width; ++i) {
      parts.push_back((leaf * (i + 0.3)).sin());
      if (notify) watch(parts.back(), [=] { notify(i); });
    }
    stacked = at::stack(parts);
    root = stacked.sum();
  }
  at::Tensor leaf = at::linspace(0, 1, 8).requires_grad_();
  std::vector<at::Tensor> parts;
  at::Tensor stacked;
  at::Tensor root;
};

}  // namespace

// GT-7
BOOST_AUTO_TEST_CASE(have_the_bits_of_serial_ones_in_many_orderings) {
  at::set_num_threads(1);
  threads one(1);
  threads three(3);
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const auto expected = pass(seed, nullptr);
    for (cpu_workers* workers : {static_cast<cpu_workers*>(&one), static_cast<cpu_workers*>(&three)})
      BOOST_TEST(difference(pass(seed, workers), expected) == "", "seed " << seed);
    compared += expected.empty() ? 0 : 1;
  }
  BOOST_TEST(compared > 300u);
}

// GT-7: when a pass becomes parallel, some of its sums have begun already.
BOOST_AUTO_TEST_CASE(have_the_bits_of_serial_ones_where_they_began_as_such) {
  threads workers(1, 1);
  const auto sum_of_uses = [](cpu_workers* of) {
    const auto x = at::linspace(0, 1, 8).requires_grad_();
    const auto y = x * 1.1;
    troupe::backward({y.sin() + y * y + y.exp() + y.cos() + y}, {at::linspace(1, 2, 8)}, {.workers = of});
    return x.grad();
  };
  const at::Tensor expected = sum_of_uses(nullptr);
  for (int round = 0; round < 5; ++round) {
    workers.busy() = false;
    BOOST_TEST(difference(sum_of_uses(&workers), expected) == "");
  }
}

// GT-7
BOOST_AUTO_TEST_CASE(have_the_bits_of_serial_ones_also_with_inputs_and_over_graphs_that_are_kept) {
  at::set_num_threads(1);
  std::size_t compared = 0;
  for (const std::int64_t grain : {0, 1, 3000}) {
    threads workers(3, grain);
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
      workers.busy() = false;
      const auto expected = pass_of_any_kind(seed, nullptr);
      BOOST_TEST(difference(pass_of_any_kind(seed, &workers), expected) == "", "seed " << seed << ", grain " << grain);
      compared += expected.empty() ? 0 : 1;
    }
  }
  BOOST_TEST(compared > 300u);
}

BOOST_AUTO_TEST_CASE(run_large_functions_on_several_threads_at_once) {
  threads workers(2);
  pass(1, &workers);
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::thread::id> here;
  // The first function of each thread waits for one on another thread: a single thread would never continue.
  const auto meet = [&](int) {
    std::unique_lock lock(mutex);
    here.insert(std::this_thread::get_id());
    changed.notify_all();
    changed.wait(lock, [&] { return here.size() > 1; });
  };
  const fan warm(8);
  troupe::backward({warm.root}, {}, {.workers = &workers});
  const fan graph(8, meet);
  troupe::backward({graph.root}, {}, {.workers = &workers});
  BOOST_TEST(here.size() > 1u);
}

BOOST_AUTO_TEST_CASE(keep_small_functions_and_the_ends_of_the_graph_on_the_callers_thread) {
  threads workers(2, 1'000'000'000);
  std::set<std::thread::id> small;
  const fan graph(50, [&](int) { small.insert(std::this_thread::get_id()); });
  troupe::backward({graph.root}, {}, {.workers = &workers});
  BOOST_TEST((small == std::set<std::thread::id>{std::this_thread::get_id()}));

  threads eager(2);
  std::set<std::thread::id> ends;
  for (int round = 0; round < 20; ++round) {
    std::vector<at::Tensor> leaves;
    at::Tensor sum = at::zeros({4});
    for (int i = 0; i < 10; ++i) {
      leaves.push_back(at::ones({4}).requires_grad_());
      sum = sum + leaves.back().sin();
      torch::autograd::impl::grad_accumulator(leaves.back())->add_pre_hook(std::make_unique<notifying_hook>([&] {
        ends.insert(std::this_thread::get_id());
      }));
    }
    const auto keep = sum.sum();
    troupe::backward({keep}, {}, {.workers = &eager});
  }
  BOOST_TEST((ends == std::set<std::thread::id>{std::this_thread::get_id()}));
}

// EW-2
BOOST_AUTO_TEST_CASE(end_although_no_worker_is_free) {
  nobody workers;
  const fan first(8);
  troupe::backward({first.root}, {}, {.workers = &workers});
  const at::Tensor expected = first.leaf.grad().clone();
  const fan second(8);
  troupe::backward({second.root}, {}, {.workers = &workers});
  BOOST_TEST(difference(second.leaf.grad(), expected) == "");
  BOOST_TEST(!workers.waiting.empty());
  for (const auto& late : workers.waiting) late();  // work of passes that are over
}

// The next pass then looks for large functions from the start.
BOOST_AUTO_TEST_CASE(say_whether_they_had_several_large_functions) {
  for (const auto& [grain, is_large] : {std::pair{std::int64_t{1}, true}, {std::int64_t{1'000'000'000'000}, false}}) {
    threads workers(1, grain);
    workers.busy() = true;
    const fan graph(8);
    troupe::backward({graph.root}, {}, {.workers = &workers});
    BOOST_TEST(workers.busy() == is_large);
  }
}

// Two functions run serially, the sum and the stack: each takes longer than the grain.
BOOST_AUTO_TEST_CASE(hand_functions_over_once_two_groups_of_functions_took_long) {
  nobody workers(1);
  for (int round = 0; round < 3; ++round) {  // the first pass measures the sines
    workers.busy() = false;
    std::vector<bool> handed_over;
    const auto look = [&] { handed_over.push_back(!workers.waiting.empty()); };
    const fan graph(8, [&](int) { look(); });
    watch(graph.stacked, look);
    troupe::backward({graph.root}, {}, {.workers = &workers});
    for (const auto& late : std::exchange(workers.waiting, {})) late();
    if (round == 0) continue;
    BOOST_REQUIRE(handed_over.size() == 9u);
    BOOST_TEST(!handed_over[0]);  // the stack
    BOOST_TEST(std::count(handed_over.begin(), handed_over.end(), true) == 8);
  }
}

// Groups double in size while functions are small. After a large function they begin with one function again.
BOOST_AUTO_TEST_CASE(find_four_large_functions_after_a_small_one) {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds grain{1};
  nobody workers(std::chrono::nanoseconds(grain).count());
  const fan graph(4, [&](int) {
    for (const auto start = clock::now(); clock::now() - start < 2 * grain;) {
    }
  });
  troupe::backward({fan(4).root});  // the first use of a function takes long
  troupe::backward({graph.root}, {}, {.workers = &workers});
  BOOST_TEST(workers.busy());
  for (const auto& late : workers.waiting) late();
}

BOOST_AUTO_TEST_CASE(hand_out_what_a_function_throws_and_run_nothing_after_it) {
  threads workers(2);
  struct mishap {};
  const fan warm(16);
  troupe::backward({warm.root}, {}, {.workers = &workers});
  for (int guilty = 0; guilty < 16; ++guilty) {
    std::atomic<int> runs{0};
    const fan graph(16, [&](int i) {
      ++runs;
      if (i == guilty) throw mishap{};
    });
    BOOST_CHECK_THROW(troupe::backward({graph.root}, {}, {.keep_graph = true, .workers = &workers}), mishap);
    const int at_the_throw = runs;
    BOOST_TEST(!graph.leaf.grad().defined());
    BOOST_TEST(runs == at_the_throw);
    BOOST_CHECK_THROW(troupe::backward({graph.root}, {}, {.keep_graph = true}), mishap);
  }
}

// JB-1
BOOST_AUTO_TEST_CASE(have_the_callers_state_on_workers) {
  threads workers(2);
  const fan warm(8);
  troupe::backward({warm.root}, {}, {.workers = &workers});
  std::atomic<int> wrong{0};
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const fan graph(8, [&](int) {
    wrong += c10::GradMode::is_enabled() ? 1 : 0;
    wrong += at::autocast::is_autocast_enabled(at::kCPU) ? 0 : 1;
    wrong += at::get_num_threads() == 1 ? 0 : 1;
  });
  troupe::backward({graph.root}, {}, {.workers = &workers});
  at::autocast::set_autocast_enabled(at::kCPU, false);
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(replay_warnings_and_run_callbacks_of_workers_on_the_callers_thread) {
  threads workers(2);
  const fan warm(20);
  troupe::backward({warm.root}, {}, {.workers = &workers});
  struct counter final : c10::WarningHandler {
    void process(const c10::Warning&) override {
      ++warnings;
      threads.insert(std::this_thread::get_id());
    }
    int warnings = 0;
    std::set<std::thread::id> threads;
  } heard;
  const c10::WarningUtils::WarningHandlerGuard hear(&heard);
  std::mutex mutex;
  std::set<std::int64_t> passes;
  const auto caller = std::this_thread::get_id();
  const fan graph(20, [&](int) {
    TORCH_WARN("of the test");
    troupe::queue_callback([&] {
      const std::lock_guard lock(mutex);
      passes.insert(std::this_thread::get_id() == caller ? 1 : 2);
    });
    const std::lock_guard lock(mutex);
    passes.insert(troupe::current_pass_id() + 1000);
  });
  troupe::backward({graph.root}, {}, {.workers = &workers});
  BOOST_TEST(heard.warnings == 20);
  BOOST_TEST((heard.threads == std::set<std::thread::id>{caller}));
  BOOST_TEST(passes.size() == 2u);  // one pass id, and one thread for callbacks
  BOOST_TEST(passes.count(1) == 1u);
}

// GT-7
BOOST_AUTO_TEST_CASE(that_create_a_graph_record_it_on_one_thread) {
  threads workers(2);
  const fan warm(8);
  troupe::backward({warm.root}, {}, {.workers = &workers});
  std::set<std::thread::id> seen;
  const fan graph(8, [&](int) { seen.insert(std::this_thread::get_id()); });
  const auto first = troupe::grad({graph.root}, {graph.leaf}, {}, {.create_graph = true, .workers = &workers})[0];
  BOOST_TEST((seen == std::set<std::thread::id>{std::this_thread::get_id()}));
  BOOST_TEST(first.requires_grad());
}

BOOST_AUTO_TEST_CASE(of_two_threads_share_the_workers) {
  at::set_num_threads(1);
  threads workers(1);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&, caller] {
      for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const std::uint64_t own = 1000 * static_cast<std::uint64_t>(caller) + seed;
        wrong += difference(pass(own, &workers), pass(own, nullptr)).empty() ? 0 : 1;
      }
    });
  }
  for (auto& each : callers) each.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
