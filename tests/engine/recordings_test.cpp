// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/plan.hpp>
#include <troupe/engine/recordings.hpp>

using namespace troupe;
using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(recordings)

namespace {

/// Nested calls, each on a thread of its own, recorded one after another as one process would record them.
class call_tree {
 public:
  explicit call_tree(std::uint64_t seed) : random_(seed) { call({}, 0, true); }

  std::vector<at::Tensor> in_order;  // tensors whose recording is known
  std::vector<recording> recordings;

 private:
  void call(const program_place& place, int depth, bool here) {
    auto mine = recording_from_now(place);
    std::uint64_t calls = 0;
    for (auto steps = random_() % 6; steps > 0; --steps) {
      if (depth < 4 && random_() % 2 == 0) {
        auto inner = place;
        inner.insert(inner.end(), {recording_from_now({}).from, ++calls});
        const bool on_this_node = random_() % 3 != 0;  // this node does not know the recordings of other nodes
        std::thread([&] { call(inner, depth + 1, on_this_node); }).join();
      } else if (here) {
        in_order.push_back(leaf_ * 2);
      }
    }
    mine.to = recording_from_now({}).from;
    if (here) recordings.push_back(mine);
  }

  std::mt19937_64 random_;
  at::Tensor leaf_ = at::ones({1}).requires_grad_();
};

const torch::autograd::Node& function_of(const at::Tensor& tensor) { return *tensor.grad_fn(); }

}  // namespace

BOOST_AUTO_TEST_CASE(functions_of_calls_are_ordered_as_in_one_process_whatever_their_threads) {  // RO-1, RO-3
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    call_tree tree(seed);
    std::shuffle(tree.recordings.begin(), tree.recordings.end(), std::mt19937_64(seed));
    const recording_order order(tree.recordings);
    pass_recorder pass{{3, 1}, {}};
    for (std::size_t i = 1; i < tree.in_order.size(); ++i, ++compared) {
      const auto& before = function_of(tree.in_order[i - 1]);
      const auto& after = function_of(tree.in_order[i]);
      const auto key = [&](const auto& function) { return std::pair(order.rank(function), function.sequence_nr()); };
      BOOST_TEST((key(before) < key(after)), "seed " << seed << ", function " << i);
      BOOST_TEST((order.key(before) < order.key(after)), "seed " << seed << ", function " << i);
      // A pass runs the functions in reverse order.
      BOOST_TEST((pass.place_of(order.key(after)) < pass.place_of(order.key(before))), "seed " << seed << ", function " << i);
    }
  }
  BOOST_TEST(compared > 500U);
}

BOOST_AUTO_TEST_CASE(functions_of_no_recording_come_first_and_accumulation_last) {  // RO-2, RO-3
  const auto leaf = at::ones({1}).requires_grad_();
  const auto early = leaf * 2;
  const recording known = recording_from_now({});
  const auto late = leaf * 2;
  const recording_order order({known});
  BOOST_TEST(order.rank(function_of(early)) == 0U);
  BOOST_TEST(order.rank(function_of(late)) == 1U);
  BOOST_TEST((order.key(function_of(early)) < order.key(function_of(late))));
  BOOST_TEST(order.rank(*torch::autograd::impl::gradient_edge(leaf).function) == recording_order::highest);
}

BOOST_AUTO_TEST_CASE(of_recordings_within_one_another_the_inner_one_counts) {
  const auto leaf = at::ones({1}).requires_grad_();
  const recording outer = recording_from_now({});
  const auto first = leaf * 2;
  recording inner = recording_from_now({recording_from_now({}).from, 1});
  const auto second = leaf * 2;
  inner.to = recording_from_now({}).from;
  const auto third = leaf * 2;
  const recording_order order({inner, outer});
  BOOST_TEST(order.rank(function_of(first)) < order.rank(function_of(second)));
  BOOST_TEST(order.rank(function_of(second)) < order.rank(function_of(third)));
  BOOST_TEST(order.find(function_of(second))->place.size() == 2U);
}

BOOST_AUTO_TEST_CASE(what_a_pass_noted_as_a_part_keeps_its_place_in_a_step_of_nothing_else) {
  const auto leaf = at::ones({1}).requires_grad_();
  pass_recorder pass;
  const auto from = recording_from_now({}).from;
  const auto sum = leaf + leaf;
  pass.note(from, {1});
  pass.note(from, {2});
  pass.note(recording_from_now({}).from, {3});  // nothing was recorded since
  BOOST_REQUIRE(pass.made.size() == 1U);
  BOOST_TEST(pass.made[0].place == program_place{1});
  const auto more = sum * 2;
  pass.note(from, {4});
  BOOST_TEST(pass.made.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_dropped_send_changes_no_place_of_what_a_pass_records) {
  const recording all = recording_from_now({});
  const auto x = at::full({1}, 2.0F).requires_grad_();
  const auto z = at::full({1}, 3.0F).requires_grad_();
  const auto product = x * z;
  const send_source of_x{attach_send({1, {1}}, {x}), 0};
  const send_source of_product{attach_send({2, {1}}, {product}), 0};
  const send_source of_z{attach_send({3, {1}}, {z}), 0};  // its contribution to z's gradient comes first
  const auto places = [&](const std::vector<send_source>& sends) {
    x.mutable_grad().reset();
    z.mutable_grad().reset();
    pass_recorder recorder{{3, 1}, {}};
    graph_task_settings settings;
    settings.sends = sends;
    settings.recordings = {all};
    settings.recorder = &recorder;
    settings.keep_graph = true;
    settings.create_graph = true;
    graph_task task(std::move(settings));
    if (sends.size() == 3) task.drop(2);
    task.deliver(0, {at::ones({1}).requires_grad_() * 1});
    task.deliver(1, {at::ones({1}).requires_grad_() * 1});
    task.run();
    BOOST_TEST(task.finished());
    std::vector<program_place> found;
    for (const recording& each : recorder.made) found.push_back(each.place);
    return found;
  };
  const auto expected = places({of_x, of_product});
  BOOST_TEST(expected.size() > 3U);
  BOOST_CHECK(places({of_x, of_product, of_z}) == expected);
}

BOOST_AUTO_TEST_SUITE_END()
