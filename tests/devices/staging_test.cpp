// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/staging.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <thread>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/variable.h>

#include <troupe/devices/arrivals.hpp>
#include <troupe/engine/torch_version.hpp>
#include <troupe/messages/errors.hpp>

#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct staging_fixture : simulated::fixture {
  devices::staging stage;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(staging, staging_fixture)

BOOST_AUTO_TEST_CASE(a_copy_comes_after_what_its_stream_had_to_do_and_nobody_waits) {  // ST-1
  simulated::gate late(stream);
  const c10::StreamGuard on(stream);
  auto made = at::full({3}, 7, at::device(first));
  const auto staged = stage.to_host({made});
  made.fill_(8);  // after the copy, on the same stream
  made.reset();
  BOOST_TEST(!staged.ready());
  BOOST_TEST(!(staged.tensors[0] == 7).any().item<bool>());
  late.open();
  staged.wait();
  BOOST_TEST(staged.ready());
  BOOST_TEST((staged.tensors[0] == 7).all().item<bool>());
}

BOOST_AUTO_TEST_CASE(tensors_of_two_devices_are_ready_when_both_are) {  // ST-1
  const auto one = at::ones({2}, at::device(first));
  const auto two = at::ones({2}, at::device(second));
  simulated::gate late(c10::Stream(c10::Stream::DEFAULT, second));
  const auto staged = stage.to_host({one, two, one * 2});
  BOOST_TEST(staged.events.size() == 2U);
  simulated::settle();
  BOOST_TEST(!staged.ready());
  late.open();
  staged.wait();
  BOOST_TEST((staged.tensors[2] == 2).all().item<bool>());
  BOOST_CHECK(staged.devices == (std::vector<c10::Device>{first, second, first}));
}

BOOST_AUTO_TEST_CASE(the_last_copy_of_a_device_counts) {  // ST-1
  const auto one = at::ones({2}, at::device(first));
  const auto large = at::ones({20'000}, at::device(first));
  simulated::synchronize();
  simulated::gate late(default_stream);
  const auto staged = stage.to_host({one, large * 2});
  late.open();
  staged.wait();
  BOOST_TEST((staged.tensors[1] == 2).all().item<bool>());
}

BOOST_AUTO_TEST_CASE(a_copy_that_nobody_wants_any_more_holds_up_no_other_device) {  // ST-1
  simulated::gate late(default_stream);
  stage.to_host({at::ones({2}, at::device(first))});
  auto next = std::async(std::launch::async, [this] { return stage.to_host({at::ones({2}, at::device(second))}); });
  const bool in_time = next.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  BOOST_TEST(in_time);
  if (!in_time) late.open();
  const auto staged = next.get();
  staged.wait();
  BOOST_TEST((staged.tensors[0] == 1).all().item<bool>());
}

BOOST_AUTO_TEST_CASE(elements_arrive_bit_for_bit_with_the_strides_of_a_dense_tensor) {  // ST-2
  const auto matrix = at::randn({4, 6});
  const auto there = matrix.to(first);
  const std::vector<at::Tensor> views{there,
                                      there.t(),
                                      there.slice(1, 0, 6, 2),
                                      there.expand({2, 4, 6}),
                                      there.select(0, 1),
                                      at::empty({0, 3}, at::device(first)),
                                      at::tensor(2.5).to(first)};
  const auto staged = stage.to_host(views);
  staged.wait();
  for (std::size_t i = 0; i < views.size(); ++i) {
    BOOST_TEST(at::equal(staged.tensors[i], views[i].cpu()), "view " << i);
    BOOST_CHECK(!views[i].is_non_overlapping_and_dense() || staged.tensors[i].strides() == views[i].strides());
    BOOST_TEST(staged.tensors[i].nbytes() == staged.tensors[i].storage().nbytes(), "view " << i);
  }
}

BOOST_AUTO_TEST_CASE(small_tensors_leave_their_device_in_one_copy) {  // ST-1, ST-6
  std::vector<at::Tensor> made;
  for (int i = 0; i < 50; ++i)
    made.push_back(at::full({i, 3}, i, at::device(first).dtype(i % 2 == 0 ? at::kByte : at::kDouble)));
  made.push_back(at::arange(6.0).view({2, 3}).to(first).t());
  const auto expected = made.back().cpu();
  const auto large = at::full({20'000}, 5.0F, at::device(first));
  made.insert(made.begin() + 1, large);
  simulated::gate late(default_stream);
  const auto before = simulated::host_copies();
  const auto staged = stage.to_host(made);
  BOOST_TEST(simulated::host_copies() - before == 2U);
  for (auto& each : made) each.zero_();  // after the copy, on the same stream
  BOOST_TEST(!staged.ready());
  late.open();
  staged.wait();
  BOOST_TEST((staged.tensors[1] == 5).all().item<bool>());
  for (std::size_t i = 2; i < 51; ++i) {
    const auto& each = staged.tensors[i];
    BOOST_TEST((each.sizes() == at::IntArrayRef({static_cast<std::int64_t>(i) - 1, 3}) && each.dtype() == made[i].dtype()));
    BOOST_TEST((each == static_cast<int>(i) - 1).all().item<bool>(), "tensor " << i);
  }
  BOOST_TEST((at::equal(staged.tensors[51], expected) && staged.tensors[51].strides() == expected.strides()));
}

BOOST_AUTO_TEST_CASE(small_tensors_arrive_in_one_copy) {  // AV-1, AV-2, AV-4
  std::vector<at::Tensor> sent;
  for (int i = 0; i < 50; ++i) sent.push_back(at::full({i, 3}, i, at::dtype(i % 2 == 0 ? at::kByte : at::kDouble)));
  sent.push_back(at::arange(6.0).view({2, 3}).t());
  sent.push_back(at::arange(8.0).slice(0, 0, 8, 2));  // has gaps
  std::vector<at::Tensor> expected;
  for (const auto& each : sent) expected.push_back(each.clone());
  sent.emplace_back();
  auto arrived = sent;
  simulated::gate late(devices::arrival_stream(first));
  const auto before = simulated::host_copies();
  devices::move_to_devices(arrived, std::vector<c10::Device>(sent.size(), first), "argument");
  BOOST_TEST(simulated::host_copies() - before == 2U);
  for (std::size_t i = 0; i < expected.size(); ++i) sent[i].zero_();  // pageable memory may change at once
  std::vector<at::Tensor> twice;
  for (std::size_t i = 0; i < expected.size(); ++i) twice.push_back(arrived[i] * 2);
  simulated::settle();
  late.open();
  BOOST_TEST(!arrived.back().defined());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    BOOST_TEST((arrived[i].device() == first && arrived[i].strides() == sent[i].strides()));
    BOOST_TEST(at::equal(twice[i].cpu(), expected[i] * 2), "tensor " << i);
    if (sent[i].is_non_overlapping_and_dense())
      BOOST_TEST(arrived[i].storage().nbytes() == expected[i].nbytes(), "tensor " << i);
  }
}

BOOST_AUTO_TEST_CASE(small_tensors_are_there_for_a_stream_that_is_late) {  // AV-4
  const c10::StreamGuard on(stream);
  simulated::gate late(stream);
  std::vector<at::Tensor> arrived{at::full({3}, 7.0F), at::full({5}, 8.0F)};
  devices::move_to_devices(arrived, {first, first}, "argument");
  simulated::settle();
  late.open();
  BOOST_TEST((at::equal(arrived[0].cpu(), at::full({3}, 7.0F)) && at::equal(arrived[1].cpu(), at::full({5}, 8.0F))));
}

BOOST_AUTO_TEST_CASE(a_device_without_memory_for_small_tensors_is_an_error_that_names_them) {
  std::vector<at::Tensor> arrived{at::Tensor(), at::ones({1}), at::ones({1})};
  const simulated::scarce_memory full(0);
  BOOST_CHECK_EXCEPTION(devices::move_to_devices(arrived, std::vector<c10::Device>(3, first), "argument"), error,
                        [](const error& failed) {
                          return failed.code() == errc::function_failed &&
                                 std::string(failed.what()).starts_with("argument[1] could not be copied to ");
                        });
}

BOOST_AUTO_TEST_CASE(a_large_tensor_comes_to_the_host_in_parts_if_asked) {  // ST-1, ST-2, ST-7
  constexpr std::int64_t size = (devices::part_bytes * 5 / 2) / sizeof(float);
  auto made = at::arange(static_cast<double>(size)).to(first).view({-1, 2}).t();
  const auto expected = made.cpu();
  const auto small = at::ones({2}, at::device(first));
  simulated::gate late(default_stream);
  auto staged = stage.to_host({made, small, made}, false, true);
  BOOST_TEST((staged.rest->coming.size() == 2U && staged.events.size() == 1U));
  const auto& copy = staged.rest->coming[0];
  BOOST_TEST((copy.host.is_same(staged.tensors[0]) && copy.parts.size() == 3U));
  BOOST_TEST(copy.parts[1].end == 2 * devices::part_bytes);
  BOOST_TEST((copy.parts[2].end == expected.nbytes() && !copy.parts[0].copied->query()));
  made.zero_();  // after the copy, on the same stream
  made.reset();
  late.open();
  copy.parts[2].copied->synchronize();
  BOOST_TEST(copy.parts[0].copied->query());
  BOOST_TEST((at::equal(copy.host, expected) && copy.host.strides() == expected.strides()));
  BOOST_TEST(!stage.to_host({expected.to(first)}).rest);
}

BOOST_AUTO_TEST_CASE(a_buffer_that_is_filled_in_parts_gets_no_other_tensor_before_the_last) {  // HB-4, ST-7
  constexpr std::int64_t size = devices::part_bytes * 2;
  const auto made = at::ones({size}, at::device(first).dtype(at::kByte));
  simulated::gate late(default_stream);
  const auto* const used = stage.to_host({made}, false, true).tensors[0].const_data_ptr();
  BOOST_TEST(stage.to_host({made}, false, true).tensors[0].const_data_ptr() != used);
}

BOOST_AUTO_TEST_CASE(a_large_tensor_arrives_in_parts_that_use_little_locked_memory) {  // AV-1, AV-2
  constexpr std::int64_t size = (devices::part_bytes * 17 / 2) / sizeof(float);
  auto sent = at::arange(static_cast<double>(size)).view({-1, 4}).t();
  const auto expected = sent * 2;
  std::vector<at::Tensor> arrived{sent};
  devices::move_to_devices(arrived, {first}, "argument");
  const auto twice = arrived[0] * 2;
  sent.zero_();
  BOOST_TEST((arrived[0].strides() == expected.strides() && at::equal(twice.cpu(), expected)));
}

BOOST_AUTO_TEST_CASE(tensors_of_a_node_for_itself_stay_without_gaps) {
  const auto whole = at::arange(6.0).view({2, 3}).to(first);
  const auto gaps = whole.slice(1, 0, 3, 2);
  const auto copies = simulated::host_copies();
  const auto staged = devices::staging::for_itself({whole.t(), gaps, at::ones({2}), at::Tensor()});
  BOOST_TEST((simulated::host_copies() == copies && staged.events.empty() && staged.made.size() == 1U));
  BOOST_TEST((staged.tensors[0].is_alias_of(whole) && staged.tensors[1].is_non_overlapping_and_dense()));
  BOOST_TEST((staged.offers(staged.tensors[0]) && !staged.offers(staged.tensors[2])));
  BOOST_CHECK(staged.devices == (std::vector<c10::Device>{first, first, at::kCPU, at::kCPU}));
  BOOST_TEST(at::equal(staged.tensors[1].cpu(), gaps.cpu()));
}

#if TROUPE_TORCH_HAS_CAPTURE_CHECKS
BOOST_AUTO_TEST_CASE(a_graph_capture_records_no_message) {  // ST-8
  const auto tensor = at::ones({2000}, at::device(first));
  std::vector<at::Tensor> arrived{at::ones({2}), at::ones({3})};
  const simulated::captured capture(stream);
  const c10::StreamGuard on(stream);
  const auto copies = simulated::host_copies();
  const auto says = [](const std::exception& refused) { return contains(refused.what(), "is in a graph capture"); };
  BOOST_CHECK_EXCEPTION(stage.to_host({tensor}), c10::Error, says);
  BOOST_CHECK_EXCEPTION(stage.to_host_coded({tensor}, wire_format::bfloat16, {}), c10::Error, says);
  BOOST_CHECK_EXCEPTION(devices::staging::for_itself({tensor}), c10::Error, says);
  BOOST_CHECK_EXCEPTION(devices::move_to_devices(arrived, {first, first}, "argument"), error, says);
  BOOST_TEST(simulated::host_copies() == copies);
  BOOST_TEST(stage.to_host({at::ones({2}, at::device(second))}).tensors.size() == 1U);
}
#endif

BOOST_AUTO_TEST_CASE(a_copy_belongs_to_no_graph) {
  const auto leaf = at::ones({2}, at::device(first)).requires_grad_();
  const auto staged = stage.to_host({leaf, leaf * 2, (leaf * 2).expand({3, 2})});
  staged.wait();
  for (const auto& each : staged.tensors) BOOST_TEST(!each.requires_grad());
}

BOOST_AUTO_TEST_CASE(tensors_of_the_cpu_pass_as_they_are) {  // ST-3
  const auto tensor = at::ones({2});
  const auto staged = stage.to_host({tensor, at::Tensor()});
  BOOST_TEST(staged.tensors[0].is_same(tensor));
  BOOST_TEST(!staged.tensors[1].defined());
  BOOST_TEST(staged.devices.empty());
  BOOST_TEST(staged.events.empty());
  BOOST_TEST(staged.ready());
}

BOOST_AUTO_TEST_CASE(what_can_not_be_copied_so_is_left_for_the_sender_to_refuse) {  // ST-4
  const auto meta = at::empty({2}, at::device(at::kMeta));
  const auto staged = stage.to_host({meta});
  BOOST_TEST(staged.tensors[0].is_same(meta));
  BOOST_TEST(!devices::is_stageable(meta));
  BOOST_TEST(!devices::is_stageable(at::ones({2})));
  BOOST_TEST(!devices::is_stageable(at::Tensor()));
  BOOST_TEST(devices::is_stageable(at::ones({2}, at::device(second))));
}

BOOST_AUTO_TEST_CASE(what_arrives_is_put_where_it_was_and_is_there_for_the_next_operator) {
  auto sent = at::randn({3, 2}).t();
  std::vector<at::Tensor> arrived{sent, at::ones({1}), at::Tensor(), sent};
  simulated::gate late(default_stream);
  devices::move_to_devices(arrived, {second, at::kCPU, first, first}, "argument");
  const auto twice = arrived[3] * 2;
  const auto expected = sent * 2;
  sent.zero_();  // pageable memory may change at once
  late.open();
  BOOST_CHECK(arrived[0].device() == second && arrived[1].is_cpu() && !arrived[2].defined());
  BOOST_CHECK(arrived[0].strides() == sent.strides());
  BOOST_TEST(at::equal(twice.cpu(), expected));
}

BOOST_AUTO_TEST_CASE(what_arrives_waits_for_no_other_work_of_the_device) {  // AV-1
  std::vector<at::Tensor> arrived{at::full({3}, 7.0F)};
  simulated::gate late(default_stream);
  devices::move_to_devices(arrived, {first}, "argument");
  const c10::StreamGuard elsewhere(other);
  simulated::settle();
  BOOST_TEST(at::equal(arrived[0].cpu(), at::full({3}, 7.0F)));
}

BOOST_AUTO_TEST_CASE(the_current_stream_waits_for_what_arrives_and_the_thread_does_not) {  // AV-1, AV-2
  auto sent = at::full({3}, 7.0F);
  std::vector<at::Tensor> arrived{sent};
  simulated::gate late(devices::arrival_stream(first));
  const c10::StreamGuard on(stream);
  devices::move_to_devices(arrived, {first}, "argument");
  sent.zero_();
  const auto twice = arrived[0] * 2;
  arrived.clear();
  const auto after = at::full({3}, 1.0F, at::device(first));  // not in the memory that is still to be read
  simulated::settle();
  late.open();
  BOOST_TEST(at::equal(twice.cpu(), at::full({3}, 14.0F)));
}

BOOST_AUTO_TEST_CASE(a_locked_buffer_may_serve_another_as_soon_as_it_is_placed) {
  const auto staged = stage.to_host({at::ones({3}, at::device(first))});
  staged.wait();
  std::vector<at::Tensor> arrived = staged.tensors;
  simulated::gate late(c10::Stream(c10::Stream::DEFAULT, second));
  std::thread opens([&] {
    simulated::settle();
    late.open();
  });
  devices::move_to_devices(arrived, {second}, "argument");
  staged.tensors[0].zero_();
  opens.join();
  BOOST_TEST(at::equal(arrived[0].cpu(), at::ones({3})));
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_is_an_error_that_names_what_was_expected) {
  std::vector<at::Tensor> arrived{at::ones({1}), at::ones({1})};
  BOOST_CHECK_EXCEPTION(
    devices::move_to_devices(arrived, {first, simulated::device(7)}, "argument of 'f'"), error, [](const error& refused) {
      const std::string text = refused.what();
      return refused.code() == errc::unsupported_tensor && text.starts_with("argument of 'f'[1]: ") &&
             text.find("simulated:7") != std::string::npos && text.find("cpu, simulated:0, simulated:1") != std::string::npos;
    });
  BOOST_TEST(arrived[0].is_cpu());
}

BOOST_AUTO_TEST_CASE(gradients_are_put_where_their_tensors_are) {
  const auto on_device = at::ones({2}, at::device(second)).requires_grad_();
  const auto on_cpu = at::ones({2}).requires_grad_();
  const torch::autograd::edge_list edges{torch::autograd::impl::gradient_edge(on_device),
                                         {},
                                         torch::autograd::impl::gradient_edge(on_cpu),
                                         torch::autograd::impl::gradient_edge(on_device)};
  torch::autograd::variable_list gradients{at::ones({2}).requires_grad_(), at::ones({2}), at::ones({2}), at::Tensor()};
  devices::move_to_devices(gradients, edges, "a gradient");
  BOOST_TEST(!gradients[0].requires_grad());  // a copy belongs to no graph
  BOOST_CHECK(gradients[0].device() == second && gradients[1].is_cpu() && gradients[2].is_cpu() && !gradients[3].defined());
}

BOOST_AUTO_TEST_CASE(a_gradient_without_an_edge_stays_where_it_is) {
  const auto on_device = at::ones({2}, at::device(second)).requires_grad_();
  const auto edge = torch::autograd::impl::gradient_edge(on_device);
  torch::autograd::edge_list edges{edge, edge};
  edges.pop_back();  // a look behind the end would find this edge
  BOOST_CHECK(devices::device_behind(edges, 0) == second);
  BOOST_CHECK(!devices::device_behind(edges, 1));
  BOOST_CHECK(!devices::device_behind({{}}, 0));
}

BOOST_AUTO_TEST_CASE(what_comes_after_an_event_is_ready_when_the_event_has_happened) {
  std::optional<simulated::gate> late(stream);
  const auto made = [&] {
    const c10::StreamGuard on(stream);
    return devices::staging::for_itself({at::ones({2}, at::device(first))}).made.at(0).second;
  }();
  const auto staged = devices::staging::after(*made, first);
  simulated::settle();
  BOOST_TEST(!staged.ready());
  late.reset();
  simulated::synchronize();
  BOOST_TEST(staged.ready());
}

BOOST_AUTO_TEST_SUITE_END()
