// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/staging.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <ATen/ATen.h>

#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::size_t page = 4096;

at::Tensor bytes(std::size_t count) { return at::empty({static_cast<std::int64_t>(count)}, at::kByte); }

struct buffers_fixture : simulated::fixture {
  /// Starts a transfer into a buffer and drops the tensor of the buffer at once. The caller holds up the default stream, so the
  /// transfer has not filled the buffer yet. Returns the memory of the buffer.
  const void* throw_away_with_the_transfer_under_way(std::size_t count = page) {
    const auto made = bytes(count).to(first, true);
    const auto filled = std::make_shared<c10::Event>(at::kPrivateUse1);
    const auto host = pool->allocate(made, filled);
    host.copy_(made, true);
    filled->record(default_stream);
    return host.const_data_ptr();
  }

  std::optional<devices::host_buffers> pool{std::in_place, at::kPrivateUse1, 4 * page};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(host_buffers, buffers_fixture)

BOOST_AUTO_TEST_CASE(a_tensor_has_the_shape_asked_for_in_locked_memory) {
  const auto like = at::empty({3, 5}, at::kDouble).t();
  const auto taken = pool->allocate(like);
  BOOST_TEST(taken.is_pinned());
  BOOST_CHECK(taken.sizes() == like.sizes() && taken.strides() == like.strides() && taken.scalar_type() == at::kDouble);
  BOOST_CHECK(taken.device().is_cpu());
}

BOOST_AUTO_TEST_CASE(what_is_locked_stays_within_the_budget) {  // HB-1
  const auto before = simulated::pinned_bytes();
  std::vector<at::Tensor> held;
  for (int i = 0; i < 6; ++i) {
    held.push_back(pool->allocate(bytes(page)));
    BOOST_TEST(held.back().is_pinned() == (i < 4));
    BOOST_TEST(simulated::pinned_bytes() - before <= 4 * page);
  }
  BOOST_TEST(pool->used().in_use == 4 * page);
  BOOST_TEST(pool->used().refused == 2U);
  BOOST_TEST(held.back().fill_(7)[0].item<int>() == 7);
}

BOOST_AUTO_TEST_CASE(idle_buffers_are_dropped_for_one_of_another_size) {  // HB-1
  const auto before = simulated::pinned_bytes();
  {
    const std::vector<at::Tensor> three{pool->allocate(bytes(page)), pool->allocate(bytes(page)), pool->allocate(bytes(page))};
  }
  BOOST_TEST(pool->used().idle == 3 * page);
  const auto large = pool->allocate(bytes(2 * page));
  BOOST_TEST(large.is_pinned());
  BOOST_TEST(pool->used().idle == 2 * page);
  BOOST_TEST(simulated::pinned_bytes() - before == 4 * page);
}

BOOST_AUTO_TEST_CASE(dropped_buffers_are_freed_while_other_threads_use_the_pool) {  // HB-1
  { const auto all = pool->allocate(bytes(4 * page)); }
  std::vector<std::future<void>> users;
  int in_time = 0;
  const simulated::before_pinned_memory_is_freed look([&] {
    users.push_back(std::async(std::launch::async, [this] { pool->used(); }));
    in_time += users.back().wait_for(std::chrono::seconds(10)) == std::future_status::ready ? 1 : 0;
  });
  pool->allocate(bytes(page));
  BOOST_TEST(users.size() == 1U);
  BOOST_TEST(in_time == 1);
}

BOOST_AUTO_TEST_CASE(memory_that_could_not_be_locked_takes_nothing_from_the_budget) {  // HB-1
  {
    const simulated::no_pinned_memory none;
    BOOST_CHECK_THROW(pool->allocate(bytes(4 * page)), c10::Error);
  }
  BOOST_TEST(pool->used().in_use == 0U);
  BOOST_TEST(pool->allocate(bytes(4 * page)).is_pinned());
}

BOOST_AUTO_TEST_CASE(a_buffer_that_serves_again_is_idle_no_more) {  // HB-2
  { const auto taken = pool->allocate(bytes(page)); }
  const auto again = pool->allocate(bytes(page));
  const auto another = pool->allocate(bytes(page));
  BOOST_TEST(pool->used().idle == 0U);
  BOOST_TEST(pool->used().in_use == 2 * page);
}

BOOST_AUTO_TEST_CASE(a_buffer_serves_again_when_its_last_view_is_gone) {  // HB-2
  auto taken = pool->allocate(bytes(100));
  const auto* memory = taken.const_data_ptr();
  auto view = taken.narrow(0, 10, 5);
  taken.reset();
  const auto meanwhile = pool->allocate(bytes(100));
  BOOST_TEST(meanwhile.const_data_ptr() != memory);
  std::thread([&] { view.reset(); }).join();
  BOOST_TEST(pool->allocate(bytes(50)).const_data_ptr() == memory);
}

BOOST_AUTO_TEST_CASE(a_buffer_has_at_most_twice_the_bytes_asked_for) {  // HB-3
  BOOST_TEST(pool->used().in_use == 0U);
  const auto small = pool->allocate(bytes(1));
  BOOST_TEST(pool->used().in_use == page);
  const auto odd = pool->allocate(bytes(page + 1));
  BOOST_TEST(pool->used().in_use == 3 * page);
  BOOST_TEST(pool->allocate(bytes(0)).numel() == 0);
}

BOOST_AUTO_TEST_CASE(a_buffer_serves_again_only_when_its_transfer_is_done_and_nobody_waits_for_that) {  // HB-4
  simulated::gate late(default_stream);
  const void* memory = throw_away_with_the_transfer_under_way();
  const auto next = pool->allocate(bytes(16));
  BOOST_TEST(next.is_pinned());
  BOOST_TEST(next.const_data_ptr() != memory);
  next.fill_(9);
  late.open();
  simulated::synchronize();
  BOOST_TEST((next == 9).all().item<bool>());
  BOOST_TEST(pool->allocate(bytes(16)).const_data_ptr() == memory);
}

BOOST_AUTO_TEST_CASE(a_buffer_behind_one_that_is_being_filled_serves_again) {  // HB-4
  auto done = pool->allocate(bytes(16));
  const void* memory = done.const_data_ptr();
  simulated::gate late(default_stream);
  throw_away_with_the_transfer_under_way();
  done.reset();
  BOOST_TEST(pool->allocate(bytes(16)).const_data_ptr() == memory);
}

BOOST_AUTO_TEST_CASE(where_all_of_the_budget_is_being_filled_there_is_ordinary_memory) {  // HB-4
  simulated::gate late(default_stream);
  for (int i = 0; i < 4; ++i) throw_away_with_the_transfer_under_way();
  for (const std::size_t count : {page, 2 * page}) BOOST_TEST(!pool->allocate(bytes(count)).is_pinned());
  BOOST_TEST(pool->used().refused == 2U);
  late.open();
  simulated::synchronize();
  BOOST_TEST(pool->allocate(bytes(2 * page)).is_pinned());
}

BOOST_AUTO_TEST_CASE(a_dropped_buffer_is_none_that_is_being_filled) {  // HB-4
  const auto before = simulated::pinned_bytes();
  auto done = pool->allocate(bytes(page));
  simulated::gate late(default_stream);
  throw_away_with_the_transfer_under_way(2 * page);
  done.reset();
  BOOST_TEST(pool->used().idle == 3 * page);
  BOOST_TEST(pool->allocate(bytes(2 * page)).is_pinned());
  BOOST_TEST(simulated::pinned_bytes() - before == 4 * page);
}

BOOST_AUTO_TEST_CASE(the_pool_ends_without_waiting_for_a_transfer_and_leaves_its_memory_alone) {  // HB-4
  const auto before = simulated::pinned_bytes();
  simulated::gate late(default_stream);
  throw_away_with_the_transfer_under_way();
  auto gone = std::async(std::launch::async, [this] { pool.reset(); });
  const bool in_time = gone.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  BOOST_TEST(in_time);
  BOOST_TEST(simulated::pinned_bytes() - before == page);
  late.open();
}

BOOST_AUTO_TEST_CASE(a_buffer_of_a_device_that_has_failed_is_not_freed) {  // HB-4
  const auto before = simulated::pinned_bytes();
  simulated::gate late(default_stream);
  throw_away_with_the_transfer_under_way(4 * page);
  {
    const simulated::broken_device broken;
    BOOST_TEST(!pool->allocate(bytes(page)).is_pinned());
    pool.reset();
  }
  BOOST_TEST(simulated::pinned_bytes() - before == 4 * page);
}

BOOST_AUTO_TEST_CASE(tensors_outlive_the_pool) {  // HB-5
  const auto before = simulated::pinned_bytes();
  auto taken = pool->allocate(bytes(10));
  pool.reset();
  taken.fill_(5);
  BOOST_TEST(taken[9].item<int>() == 5);
  taken.reset();
  BOOST_TEST(simulated::pinned_bytes() == before);
}

BOOST_AUTO_TEST_SUITE_END()
