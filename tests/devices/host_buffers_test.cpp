// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/host_buffers.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <thread>

#include <ATen/ATen.h>

#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::size_t page = 4096;

at::Tensor bytes(std::size_t count) { return at::empty({static_cast<std::int64_t>(count)}, at::kByte); }

struct buffers_fixture : simulated::fixture {
  std::optional<devices::host_buffers> pool{std::in_place, at::kPrivateUse1, 4 * page};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(host_buffers, buffers_fixture)

BOOST_AUTO_TEST_CASE(a_tensor_has_the_shape_asked_for_in_locked_memory) {
  const auto like = at::empty({3, 5}, at::kDouble).t();
  const auto taken = pool->take(like);
  BOOST_TEST(taken.is_pinned());
  BOOST_CHECK(taken.sizes() == like.sizes() && taken.strides() == like.strides() && taken.scalar_type() == at::kDouble);
  BOOST_CHECK(taken.device().is_cpu());
}

BOOST_AUTO_TEST_CASE(HB1_what_is_locked_stays_within_the_budget) {
  const auto before = simulated::pinned_bytes();
  std::vector<at::Tensor> held;
  for (int i = 0; i < 6; ++i) {
    held.push_back(pool->take(bytes(page)));
    BOOST_TEST(held.back().is_pinned() == (i < 4));
    BOOST_TEST(simulated::pinned_bytes() - before <= 4 * page);
  }
  BOOST_TEST(pool->used().in_use == 4 * page);
  BOOST_TEST(pool->used().refused == 2U);
  BOOST_TEST(held.back().fill_(7)[0].item<int>() == 7);
}

BOOST_AUTO_TEST_CASE(HB1_idle_buffers_make_room_for_one_of_another_size) {
  const auto before = simulated::pinned_bytes();
  { const std::vector<at::Tensor> three{pool->take(bytes(page)), pool->take(bytes(page)), pool->take(bytes(page))}; }
  BOOST_TEST(pool->used().idle == 3 * page);
  const auto large = pool->take(bytes(2 * page));
  BOOST_TEST(large.is_pinned());
  BOOST_TEST(pool->used().idle == 2 * page);
  BOOST_TEST(simulated::pinned_bytes() - before == 4 * page);
}

BOOST_AUTO_TEST_CASE(HB2_a_buffer_serves_again_when_its_last_view_is_gone) {
  auto taken = pool->take(bytes(100));
  const auto* memory = taken.const_data_ptr();
  auto view = taken.narrow(0, 10, 5);
  taken.reset();
  const auto meanwhile = pool->take(bytes(100));
  BOOST_TEST(meanwhile.const_data_ptr() != memory);
  std::thread([&] { view.reset(); }).join();
  BOOST_TEST(pool->take(bytes(50)).const_data_ptr() == memory);
}

BOOST_AUTO_TEST_CASE(HB3_a_buffer_has_at_most_twice_the_bytes_asked_for) {
  BOOST_TEST(pool->used().in_use == 0U);
  const auto small = pool->take(bytes(1));
  BOOST_TEST(pool->used().in_use == page);
  const auto odd = pool->take(bytes(page + 1));
  BOOST_TEST(pool->used().in_use == 3 * page);
  BOOST_TEST(pool->take(bytes(0)).numel() == 0);
}

BOOST_AUTO_TEST_CASE(HB4_a_buffer_serves_again_only_when_its_transfer_is_done) {
  const auto made = at::full({4}, 3, at::device(first));
  simulated::synchronize();
  simulated::gate late(default_stream);
  {
    const auto filled = std::make_shared<c10::Event>(at::kPrivateUse1);
    const auto host = pool->take(made, filled);
    host.copy_(made, true);
    filled->record(default_stream);
  }  // thrown away with the transfer under way
  std::thread opens([&] {
    simulated::settle();
    late.open();
  });
  const auto next = pool->take(bytes(16));  // waits: the only idle buffer of that size is being filled
  const auto own = next.fill_(9);
  opens.join();
  simulated::synchronize();
  BOOST_TEST((own == 9).all().item<bool>());
}

BOOST_AUTO_TEST_CASE(HB5_tensors_outlive_the_pool) {
  const auto before = simulated::pinned_bytes();
  auto taken = pool->take(bytes(10));
  pool.reset();
  taken.fill_(5);
  BOOST_TEST(taken[9].item<int>() == 5);
  taken.reset();
  BOOST_TEST(simulated::pinned_bytes() == before);
}

BOOST_AUTO_TEST_SUITE_END()
