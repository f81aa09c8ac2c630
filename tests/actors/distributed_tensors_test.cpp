// SPDX-License-Identifier: BSD-3-Clause
// Tensors and gradients of all kinds travel between nodes: undefined, sparse, of every dtype, large, and with shared storage.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <caf/send.hpp>
#include <caf/span.hpp>

#include <troupe/actors/node_access.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/tensor_rules.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "linear_cluster.hpp"

namespace {

using tensors = std::vector<at::Tensor>;

/// A function with one input and two results. `defined` says which results got a gradient: 1 the first, 2 the second, 3 both.
struct two_results : torch::autograd::Function<two_results> {
  static inline std::atomic<int> defined{-1};

  static tensors forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    context->set_materialize_grads(false);
    return {x * 2, x * 3};
  }
  static tensors backward(torch::autograd::AutogradContext*, tensors gradients) {
    defined = (gradients[0].defined() ? 1 : 0) + (gradients[1].defined() ? 2 : 0);
    return {gradients[0].defined() ? gradients[0] * 2 : gradients[1] * 3};
  }
};

/// An embedding. Methods: rows (looks up the given indices), all (returns the whole table: the caller looks up rows).
struct embedding : troupe::module {
  explicit embedding(const troupe::attributes&) : weight(at::arange(30.).reshape({10, 3}).requires_grad_()) {}

  troupe::call_reply call(const std::string& method, troupe::call_arguments& arguments) override {
    if (method == "all") return {{weight}};
    return {{lookup(weight, arguments.tensors.at(0))}};
  }
  troupe::named_tensors parameters() override { return {{"weight", weight}}; }

  static at::Tensor lookup(const at::Tensor& table, const at::Tensor& rows) {
    return at::embedding(table, rows, -1, /*scale_grad_by_freq=*/false, /*sparse=*/true);
  }

  at::Tensor weight;
};

struct two_nodes {
  two_nodes() {
    b.functions().add("two_results", [](troupe::call_arguments& arguments) {
      return troupe::call_reply{two_results::apply(arguments.tensors.at(0))};
    });
    b.functions().add("echo", [](troupe::call_arguments& arguments) { return troupe::call_reply{arguments.tensors}; });
    b.functions().add("combine", [](troupe::call_arguments& arguments) {
      const auto& t = arguments.tensors;
      const auto before = t.at(1).detach().clone();
      t.at(0).detach().add_(1);  // each tensor arrives in its own storage
      if (!at::equal(before, t.at(1).detach())) throw std::runtime_error("expected tensors that share nothing here");
      return troupe::call_reply{{(t.at(0).detach() - 1) * t.at(1) + t.at(0).sum() * 0, t.at(2) * t.at(3)}};
    });
    b.functions().add("large", [](troupe::call_arguments& arguments) {
      const auto& t = arguments.tensors;
      return troupe::call_reply{{t.at(0) * t.at(2) + t.at(1).sum(), t.at(3) * t.at(3)}};
    });
    b.functions().add("write", [](troupe::call_arguments& arguments) {
      arguments.tensors.at(0).add_(1);
      return troupe::call_reply{arguments.tensors};
    });
    troupe::add_module_type(b, "embedding", [](const auto& values) { return std::make_shared<embedding>(values); });
    a.join("127.0.0.1", b.port());
  }

  troupe::node a{troupe::test::named_settings("a")};
  troupe::node b{troupe::test::named_settings("b")};
};

at::Tensor bits(const at::Tensor& x) { return x.detach().contiguous().view(at::kByte); }

/// Waits until the node holds no piece of a tensor whose message has not come. False if a piece is left after 20 s.
bool nothing_arrives(troupe::node& where) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (troupe::services_of(where).network.arriving->bytes() != 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  return troupe::services_of(where).network.arriving->bytes() == 0;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(distributed_tensors, two_nodes)

BOOST_AUTO_TEST_CASE(an_undefined_gradient_arrives_undefined_not_as_zeros) {
  auto x = torch::tensor({1.0, 5.0}, torch::requires_grad());
  for (const std::size_t used : {0, 1}) {
    troupe::context pass(a);
    auto y = a.peer("b").call("two_results", {x}).get().tensors.at(used);
    pass.backward({y.sum()}).get();
    BOOST_TEST(two_results::defined == (used == 0 ? 1 : 2));
    BOOST_TEST(at::equal(pass.gradient(x), torch::full({2}, used == 0 ? 2. : 3.)));
  }
}

BOOST_AUTO_TEST_CASE(a_sparse_gradient_crosses_nodes_accumulates_and_is_stepped_where_its_embedding_lives) {
  auto remote = a.peer("b").create("embedding");
  troupe::optimizer optimizer{a, {"sgd", {{"lr", 0.5}}}, {remote}};
  embedding local({});
  torch::optim::SGD reference({local.weight}, torch::optim::SGDOptions(0.5));
  const auto rows = at::tensor({4, 0, 4, 9}, at::kLong);
  const auto others = at::tensor({9, 1}, at::kLong);
  const auto loss_of = [](const at::Tensor& there, const at::Tensor& here) { return (there * there).sum() + (here * 3).sum(); };
  for (int step = 0; step < 2; ++step) {
    troupe::context pass(a);
    for (int i = 0; i < 2; ++i) {  // two passes: sparse gradients add up
      auto there = remote.call("rows", {rows}).get().tensors.at(0);
      auto all = remote.call("all").get().tensors.at(0);
      pass.backward({loss_of(there, embedding::lookup(all, others))}).get();
      loss_of(embedding::lookup(local.weight, rows), embedding::lookup(local.weight, others)).backward();
    }
    const auto gradient = remote.gradients(pass).at(0).second;
    BOOST_REQUIRE(gradient.is_sparse());
    BOOST_TEST(at::equal(gradient.to_dense(), local.weight.grad().to_dense()));
    BOOST_TEST(gradient.coalesce().values().size(0) == 4);  // 4 of the 10 rows have a gradient
    optimizer.step(pass);
    reference.step();
    reference.zero_grad();
  }
  BOOST_TEST(at::equal(remote.parameters().at(0).second, local.weight.detach()));
}

BOOST_AUTO_TEST_CASE(tensors_and_gradients_of_every_dtype_cross_nodes_bit_for_bit) {
  std::size_t with_gradient = 0;
  for (int i = 0; i < static_cast<int>(at::ScalarType::NumOptions); ++i) {
    const auto dtype = static_cast<at::ScalarType>(i);
    if (!troupe::wire_number(dtype)) continue;
    const auto width = static_cast<std::int64_t>(c10::elementSize(dtype));
    const auto drawn = [&](std::int64_t from) { return (at::arange(from, from + 6 * width, at::kByte) % 2).view(dtype); };
    auto x = drawn(0);
    const bool differentiable = torch::autograd::isDifferentiableType(dtype);
    if (differentiable) x.requires_grad_();
    BOOST_TEST_CONTEXT(c10::toString(dtype)) {
      troupe::context pass(a);
      auto y = a.peer("b").call("echo", {x}).get().tensors.at(0);
      BOOST_TEST(at::equal(bits(y), bits(x)));
      BOOST_TEST(y.requires_grad() == differentiable);
      if (!differentiable) continue;
      ++with_gradient;
      troupe::backward_options options;
      options.gradients = {drawn(1)};
      pass.backward({y}, options).get();
      const auto gradient = pass.gradient(x);
      BOOST_REQUIRE(gradient.defined());
      BOOST_TEST(gradient.scalar_type() == dtype);
      BOOST_TEST(at::equal(bits(gradient), bits(options.gradients[0])));
    }
  }
  BOOST_TEST(with_gradient >= 7U);
}

BOOST_AUTO_TEST_CASE(of_gradients_whose_elements_repeat_only_one_of_each_travels) {
  const auto sent = [&] { return a.status().peers.at(0).bytes_sent; };
  for (const auto& loss : std::vector<std::function<at::Tensor(const at::Tensor&)>>{
         [](const at::Tensor& y) { return y.sum(); }, [](const at::Tensor& y) { return y.sum(0).square().sum(); },
         [](const at::Tensor& y) {
           return (y.sum(1, true) * at::arange(700.).view({700, 1})).sum();
         }}) {
    auto x = at::rand({700, 700}).requires_grad_();
    troupe::context pass(a);
    const auto y = a.peer("b").call("echo", {x}).get().tensors.at(0);
    const auto before = sent();
    pass.backward({loss(y)}).get();
    BOOST_TEST(sent() - before <= 700U * sizeof(float));
    auto expected = x.detach().clone().requires_grad_();
    loss(expected).backward();
    BOOST_TEST(at::equal(pass.gradient(x), expected.grad()));
  }
}

BOOST_AUTO_TEST_CASE(tensors_of_many_pieces_and_their_gradients_cross_nodes_as_small_ones_do) {  // GW-6
  const auto run = [](const at::Tensor& x, const auto& combine) {
    const tensors y = combine({x.t(), x.narrow(0, 1, 500).expand({3, 500, 700}), x, x});
    return y.at(0).sum() + (y.at(1) * at::arange(700.)).sum();
  };
  auto x = at::rand({700, 700}).requires_grad_();  // gradients of 2 to 4 MiB, one of them expanded
  troupe::context pass(a);
  pass.backward({run(x, [&](tensors t) { return a.peer("b").call("large", std::move(t)).get().tensors; })}).get();
  auto expected = x.detach().clone().requires_grad_();
  run(expected, [](const tensors& t) { return tensors{t[0] * t[2] + t[1].sum(), t[3] * t[3]}; }).backward();
  BOOST_TEST(at::equal(pass.gradient(x), expected.grad()));
  BOOST_TEST(troupe::services_of(b).network.arriving->bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(a_large_tensor_that_is_sent_twice_arrives_apart) {
  const auto x = at::arange(1 << 20);
  const auto y = a.peer("b").call("write", {x, x}).get().tensors;
  BOOST_TEST(at::equal(y.at(0), x + 1));
  BOOST_TEST(at::equal(y.at(1), x));
}

BOOST_AUTO_TEST_CASE(small_calls_get_through_between_the_pieces_of_large_ones) {  // GW-6
  std::mutex mutex;
  std::string order;
  b.functions().add("note", [&](troupe::call_arguments& arguments) {
    std::lock_guard lock(mutex);
    order += std::to_string(arguments.tensors.at(0).numel()) + " ";
    return troupe::call_reply{};
  });
  auto large = a.peer("b").call("note", {at::zeros({16 << 20}, at::kByte)});
  auto small = a.peer("b").call("note", {at::zeros({1})});
  small.get();
  large.get();
  BOOST_TEST(order == "1 16777216 ");
}

BOOST_AUTO_TEST_CASE(a_call_whose_deadline_passes_before_its_tensors_have_left_leaves_none_of_them) {  // GW-7
  BOOST_CHECK_EXCEPTION(
    a.peer("b").call("echo", {at::zeros({64 << 20}, at::kByte)}, {}, {}, std::chrono::milliseconds(2)).get(), troupe::error,
    [](const troupe::error& reason) { return reason.code() == troupe::errc::deadline_passed; });
  a.peer("b").call("echo", {at::zeros({1 << 20}, at::kByte)}).get();  // leaves after the pieces of the first call
  BOOST_TEST(troupe::services_of(b).network.arriving->bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(of_a_node_that_stops_while_its_tensors_leave_nothing_stays) {  // GW-7
  auto c = std::make_unique<troupe::node>(troupe::test::named_settings("c"));
  c->join("127.0.0.1", b.port());
  auto lost = c->peer("b").call("echo", {at::zeros({64 << 20}, at::kByte)});
  while (troupe::services_of(b).network.arriving->bytes() == 0) std::this_thread::yield();
  c.reset();
  BOOST_TEST(nothing_arrives(b));
}

BOOST_AUTO_TEST_CASE(of_a_node_that_is_down_a_late_piece_is_dropped_with_what_came_before) {  // GW-7
  auto c = std::make_unique<troupe::node>(troupe::test::named_settings("c"));
  c->join("127.0.0.1", b.port());
  const auto gone = c->id();
  c.reset();
  BOOST_REQUIRE(troupe::test::becomes_true([&] { return troupe::services_of(b).directory.is_down(gone); }));
  const std::vector<char> late(2 * troupe::arriving_tensors::least_bytes);
  const troupe::tensor_piece piece{gone, 5, 2 * late.size(), 0, {}};
  BOOST_TEST(troupe::services_of(b).network.arriving->add(piece, caf::as_bytes(caf::make_span(late))) == nullptr);
  caf::anon_send(troupe::services_of(b).actors.gateway, piece);
  BOOST_TEST(nothing_arrives(b));
}

BOOST_AUTO_TEST_CASE(nothing_waits_for_the_deadline_of_a_large_call_that_was_answered) {
  std::weak_ptr<troupe::passes::context_record> record;
  {
    troupe::context pass(a);
    record = troupe::services_of(a).contexts.find(pass.id()).record;
    a.peer("b").call("echo", {at::zeros({1 << 20}, at::kByte)}, {}, {}, std::chrono::minutes(10)).get();
  }
  BOOST_TEST(troupe::test::becomes_true([&] { return record.expired(); }));
}

BOOST_AUTO_TEST_CASE(tensors_that_share_storage_arrive_apart_and_their_gradients_meet) {
  const auto run = [](const at::Tensor& base, const auto& combine) {
    const tensors result = combine({base.narrow(0, 0, 4), base.narrow(0, 2, 4), base, base});
    return (result.at(0) * at::arange(1., 5.)).sum() + result.at(1).sum();
  };
  auto x = at::arange(6.).requires_grad_();
  troupe::context pass(a);
  pass.backward({run(x, [&](tensors t) { return a.peer("b").call("combine", std::move(t)).get().tensors; })}).get();
  BOOST_TEST(at::equal(x.detach(), at::arange(6.)));
  auto expected = at::arange(6.).requires_grad_();
  run(expected, [](const tensors& t) { return tensors{t[0].detach() * t[1] + t[0].sum() * 0, t[2] * t[3]}; }).backward();
  BOOST_TEST(at::equal(pass.gradient(x), expected.grad()));
}

BOOST_AUTO_TEST_SUITE_END()
