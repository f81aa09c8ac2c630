// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/device_events.hpp>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/current_streams.hpp>
#include <troupe/engine/gradient_table.hpp>

#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

float value_of(const at::Tensor& tensor) {
  simulated::synchronize();
  return tensor.cpu()[0].item<float>();
}

struct events_fixture : simulated::fixture {
  at::Tensor full(double value, const c10::Stream& on) const {
    const c10::StreamGuard guard(on);
    return at::full({3}, value, at::device(on.device()));
  }

  /// A table with one gradient, which `on` makes.
  engine::gradient_table table_of(double value, const c10::Stream& on) const {
    const c10::StreamGuard guard(on);
    engine::gradient_table result;
    result.accumulate(leaf, at::full({3}, value, at::device(on.device())));
    result.made_here();
    return result;
  }

  at::Tensor leaf = at::ones({3}, at::device(first)).requires_grad_();
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(events_of_devices, events_fixture)

BOOST_AUTO_TEST_CASE(order_the_reader_after_the_stream_that_made_the_tensor) {  // DE-1
  simulated::gate late(stream);
  const auto made = full(5, stream);
  engine::device_events events;
  {
    const c10::StreamGuard guard(stream);
    events.record(made);
  }
  BOOST_TEST(!events.empty());
  events.wait(made);
  const auto read = made * 1;
  simulated::settle();
  late.open();
  BOOST_TEST(value_of(read) == 5);
}

BOOST_AUTO_TEST_CASE(keep_the_memory_until_the_reader_has_read) {  // DE-2
  auto made = full(5, stream);
  engine::device_events events;
  {
    const c10::StreamGuard guard(stream);
    events.record(made);
  }
  simulated::gate late(default_stream);
  events.wait(made);
  const auto read = made * 1;
  made.reset();
  full(7, stream);
  simulated::settle();
  late.open();
  BOOST_TEST(value_of(read) == 5);
}

BOOST_AUTO_TEST_CASE(order_the_reader_on_each_of_two_devices) {  // DE-1
  const auto of_second = simulated::new_stream(1);
  simulated::gate late(stream);
  simulated::gate late_too(of_second);
  const auto one = full(5, stream);
  const auto two = full(6, of_second);
  engine::device_events events;
  {
    const c10::StreamGuard guard(stream);
    const c10::StreamGuard guard_too(of_second);
    events.record(one);
    events.record(two);
  }
  events.wait(one);
  events.wait(two);
  const auto read_one = one * 1;
  const auto read_two = two * 1;
  simulated::settle();
  late.open();
  late_too.open();
  BOOST_TEST(value_of(read_one) == 5);
  BOOST_TEST(value_of(read_two) == 6);
}

BOOST_AUTO_TEST_CASE(have_one_event_for_all_tensors_of_a_device) {
  const auto made = full(5, stream);
  engine::device_events events;
  {
    const c10::StreamGuard guard(stream);
    for (int i = 0; i < 3; ++i) events.record(made);
  }
  const auto before = simulated::waits();
  events.wait(made);
  BOOST_TEST(simulated::waits() == before + 1);
}

BOOST_AUTO_TEST_CASE(cost_nothing_for_tensors_of_the_cpu_and_on_one_stream) {
  engine::device_events events;
  events.record(at::ones({3}));
  events.record(at::Tensor());
  events.record(at::empty({3}, at::device(at::kMeta)));
  BOOST_TEST(events.empty());
  const auto made = full(5, default_stream);
  events.record(made);
  const auto before = simulated::waits();
  events.wait(made);
  BOOST_TEST(simulated::waits() == before);
}

BOOST_AUTO_TEST_CASE(of_devices_that_nobody_uses_need_no_context) {  // CS-1
  const engine::current_streams used;
  BOOST_TEST(!used.empty());
  const simulated::unused_devices none;
  const engine::current_streams unused;
  BOOST_TEST(unused.empty());
  { const engine::same_streams as_there(unused); }
  BOOST_TEST(simulated::unused_devices::uses() == 0);
}

BOOST_AUTO_TEST_CASE(leave_a_current_device_without_context_unused) {  // CS-1
  const c10::DeviceGuard guard(second);
  const simulated::unused_devices none(1);
  const engine::current_streams used;
  BOOST_TEST(!used.empty());
  used.set();
  BOOST_TEST(simulated::unused_devices::uses() == 0);
}

BOOST_AUTO_TEST_CASE(of_a_table_order_who_finds_a_gradient) {  // TB-4
  simulated::gate late(stream);
  const auto table = table_of(5, stream);
  const auto read = table.find(leaf) * 1;
  simulated::settle();
  late.open();
  BOOST_TEST(value_of(read) == 5);
}

BOOST_AUTO_TEST_CASE(of_two_tables_order_their_sum_and_who_finds_it) {  // TB-4
  simulated::gate late_one(stream);
  simulated::gate late_other(other);
  auto table = table_of(5, stream);
  const auto third = simulated::new_stream();
  {
    const c10::StreamGuard guard(third);
    table.merge(table_of(2, other));
  }
  const auto read = table.find(leaf) * 1;
  simulated::settle();
  late_one.open();
  simulated::settle();
  late_other.open();
  BOOST_TEST(value_of(read) == 7);
}

BOOST_AUTO_TEST_CASE(of_a_table_keep_a_gradient_as_it_is_for_a_stream_that_still_reads_it) {  // TB-3
  auto table = table_of(5, stream);
  simulated::synchronize();
  simulated::gate late(other);
  at::Tensor read;
  {
    const c10::StreamGuard guard(other);
    read = table.find(leaf) * 1;
  }
  table.merge(table_of(2, stream));
  simulated::settle();
  late.open();
  BOOST_TEST(value_of(read) == 5);
  BOOST_TEST(value_of(table.find(leaf)) == 7);
}

BOOST_AUTO_TEST_SUITE_END()
