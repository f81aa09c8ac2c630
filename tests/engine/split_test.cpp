// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/gradient_table.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/engine/send_backward.hpp>

#include "engine/oracle.hpp"
#include "engine/random_program.hpp"

using namespace troupe;
using namespace troupe::engine;
using namespace troupe::test;

BOOST_AUTO_TEST_SUITE(split_graphs)

namespace {

struct parcel {
  message_id message;
  std::vector<at::Tensor> gradients;
  std::vector<bool> unreached;
};

struct post_office final : outlet {
  void emit(const recv_backward& from, std::vector<at::Tensor> gradients, std::vector<bool> unreached, bool) override {
    parcels.push_back({from.message, std::move(gradients), std::move(unreached)});
  }
  std::vector<parcel> parcels;
};

// One half of a program that is split in two: its sends, its graph task, its gradients.
struct half {
  std::vector<send_source> sends;
  std::map<message_id, std::size_t> index;
  gradient_table leaves;
  std::optional<graph_task> task;
  std::set<std::size_t> open;  // sends neither delivered nor dropped
  std::set<std::size_t> live;  // sends that the discovery reached
};

enum class ranks { all_zero, by_call };

class split_program {
 public:
  split_program(std::uint64_t seed, ranks by) : random_(seed) {
    program_options options;
    options.unusual = false;
    options.calls = by == ranks::by_call;
    options.cross = [this, by](const std::vector<at::Tensor>& tensors, int from, int to) {
      const message_id message{++messages_, node_id{static_cast<std::uint64_t>(from + 1)}};
      if (const auto send = attach_send(message, tensors)) {
        half& sender = halves_[from];
        sender.index[message] = sender.sends.size();
        sender.sends.push_back({send, by == ranks::by_call && from == 1 ? call_ : 0});
      }
      call_ =
        to == 1 ? messages_ : call_;  // functions that side 1 records from here on belong to the call made by this message
      return attach_recv({node_id{1}, 1}, message, tensors, std::vector<bool>(tensors.size(), true));
    };
    program_ = random_program(seed, options);
  }

  void run() {
    start();
    if (random_() % 2 == 0) discover();
    while (step()) {
    }
  }

  std::vector<at::Tensor> gradients() {
    std::vector<at::Tensor> found;
    for (std::size_t i = 0; i < program_.leaves.size(); ++i) found.push_back(halves_[i % 2].leaves.find(program_.leaves[i]));
    return found;
  }

  const random_program& program() const { return program_; }
  bool finished() const { return halves_[0].task->finished() && halves_[1].task->finished(); }
  std::size_t dropped() const { return dropped_; }
  std::size_t delivered() const { return delivered_; }
  std::size_t partly() const { return partly_; }

 private:
  void start() {
    for (int side = 0; side < 2; ++side) {
      half& here = halves_[side];
      std::shuffle(here.sends.begin(), here.sends.end(), random_);  // the order of the list of sends must not matter
      graph_task_settings settings;
      if (side == 0) {
        for (std::size_t i = 0; i < program_.roots.size(); ++i) {
          const at::Tensor& gradient = program_.root_gradients[i];
          settings.roots.push_back(torch::autograd::impl::gradient_edge(program_.roots[i]));
          settings.root_gradients.push_back(gradient.defined() ? gradient : at::ones_like(program_.roots[i]));
        }
      }
      for (std::size_t i = 0; i < here.sends.size(); ++i) {
        here.index[here.sends[i].function->message] = i;
        here.open.insert(i);
      }
      settings.sends = here.sends;
      settings.leaves = &here.leaves;
      settings.emit_to = &post_;
      here.task.emplace(std::move(settings));
    }
  }

  // The discovery of smart mode: the recvs that the roots reach, then the recvs that the named sends reach. A pass discovers when nothing
  // is left to do; an earlier discovery must do no harm.
  void discover() {
    discovered_ = true;
    for (half& here : halves_)
      BOOST_TEST(here.task->reach_from_sends({}).empty());  // a discovery walks where sends are dropped
    std::deque<message_id> named;
    const auto add = [&](const std::vector<message_id>& more) { named.insert(named.end(), more.begin(), more.end()); };
    add(halves_[0].task->reach_from_roots());
    while (!named.empty()) {
      half& sender = halves_[named.front().node.value - 1];
      const std::size_t index = sender.index.at(named.front());
      named.pop_front();
      BOOST_REQUIRE(sender.live.insert(index).second);  // each recv is named once in all calls
      add(sender.task->reach_from_sends({index}));
    }
  }

  // One random event: a half runs, a parcel arrives, or a send that nothing reaches is dropped.
  bool step() {
    std::vector<std::function<void()>> possible;
    for (half& here : halves_) {
      possible.push_back([&here] { here.task->run(); });
      for (const std::size_t send : here.open) {
        if (discovered_ && here.live.count(send) == 0) {
          possible.push_back([this, &here, send] {
            here.task->drop(send);
            here.open.erase(send);
            ++dropped_;
          });
        }
      }
    }
    for (std::size_t i = 0; i < post_.parcels.size(); ++i) possible.push_back([this, i] { deliver(i); });
    if (!discovered_ && random_() % 4 == 0) possible.assign(1, [this] { discover_if_quiet(); });
    possible[random_() % possible.size()]();
    return std::any_of(std::begin(halves_), std::end(halves_), [](const half& h) { return !h.task->finished(); }) &&
           ++steps_ < 10000;
  }

  void discover_if_quiet() {
    for (half& here : halves_) here.task->run();
    if (post_.parcels.empty()) discover();
  }

  void deliver(std::size_t i) {
    parcel next = std::move(post_.parcels[i]);
    post_.parcels.erase(post_.parcels.begin() + static_cast<std::ptrdiff_t>(i));
    half& sender = halves_[next.message.node.value - 1];
    const std::size_t index = sender.index.at(next.message);
    BOOST_REQUIRE(sender.open.count(index) == 1);
    BOOST_REQUIRE((!discovered_ || sender.live.count(index) == 1));  // gradients arrive only for discovered sends
    partly_ += std::count(next.unreached.begin(), next.unreached.end(), true) > 0 ? 1 : 0;
    sender.task->deliver(index, std::move(next.gradients), next.unreached);
    sender.open.erase(index);
    ++delivered_;
  }

  std::mt19937_64 random_;
  random_program program_{0, {0, false, {}, false}};
  post_office post_;
  half halves_[2];
  std::uint64_t messages_ = 0;
  std::uint64_t call_ = 0;
  std::size_t dropped_ = 0;
  std::size_t delivered_ = 0;
  std::size_t partly_ = 0;  // of these, with tensors that nothing leads to
  bool discovered_ = false;
  int steps_ = 0;
};

// The same program on one side; each crossing is a view.
std::vector<at::Tensor> on_one_side(std::uint64_t seed, ranks by) {
  program_options options;
  options.unusual = false;
  options.calls = by == ranks::by_call;
  options.cross = [](const std::vector<at::Tensor>& tensors, int, int) {
    std::vector<at::Tensor> arrived;
    for (const at::Tensor& tensor : tensors) arrived.push_back(tensor.view_as(tensor));
    return arrived;
  };
  const random_program program(seed, options);
  torch::autograd::backward(program.roots, program.root_gradients);
  return gradients_of(program.leaves);
}

void compare(ranks by) {
  std::size_t delivered = 0;
  std::size_t dropped = 0;
  std::size_t partly = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      split_program split(seed, by);
      split.run();
      BOOST_TEST(split.finished());
      BOOST_TEST(difference(split.gradients(), on_one_side(seed, by), strides::meaningful) == "");
      BOOST_TEST(std::all_of(split.program().leaves.begin(), split.program().leaves.end(),
                             [](const at::Tensor& leaf) { return !leaf.grad().defined(); }));
      delivered += split.delivered();
      dropped += split.dropped();
      partly += split.partly();
    }
  }
  BOOST_TEST_MESSAGE(delivered << " sends delivered, " << partly << " of them in part, " << dropped << " dropped");
  BOOST_TEST(delivered > 500u);
  BOOST_TEST(dropped > 500u);
  BOOST_TEST(partly > 100u);
}

}  // namespace

// GT-1, GT-2, GT-3, GT-10
BOOST_AUTO_TEST_CASE(have_the_bits_of_the_whole_graph_whatever_arrives_when) { compare(ranks::all_zero); }

BOOST_AUTO_TEST_CASE(have_the_bits_of_the_whole_graph_when_calls_have_ranks) { compare(ranks::by_call); }

BOOST_AUTO_TEST_SUITE_END()
