// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <boost/test/unit_test.hpp>

#include <troupe/engine/graph_task_implementation.hpp>

using namespace troupe::engine;

BOOST_AUTO_TEST_SUITE(workspaces)

BOOST_AUTO_TEST_CASE(give_their_memory_to_the_next_task_of_the_thread_and_free_the_tensors) {
  auto used = workspace::acquire();
  const auto tensor = at::ones({1});
  used->slots.assign(100, tensor);
  used->inputs.assign(3, tensor);
  used->ready.push({1, 0, 0});
  workspace* const memory = used.get();
  workspace::give_back(std::move(used));
  BOOST_TEST(tensor.use_count() == 1u);
  std::unique_ptr<workspace> elsewhere;
  std::thread([&] { elsewhere = workspace::acquire(); }).join();
  BOOST_TEST(elsewhere.get() != memory);
  const auto next = workspace::acquire();
  BOOST_TEST(next.get() == memory);
  BOOST_TEST(next->slots.capacity() >= 100u);
  BOOST_TEST(next->slots.empty());
  BOOST_TEST(next->inputs.empty());
  BOOST_TEST(next->ready.empty());
  BOOST_TEST(workspace::acquire().get() != memory);
}

BOOST_AUTO_TEST_CASE(of_more_than_eight_mebibytes_are_not_kept) {
  auto used = workspace::acquire();
  used->slots.resize((std::size_t{8} << 20) / sizeof(at::Tensor) + 1);
  workspace::give_back(std::move(used));
  BOOST_TEST(workspace::acquire()->slots.capacity() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
