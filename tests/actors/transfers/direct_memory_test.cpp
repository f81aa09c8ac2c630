// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/direct_memory.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

#include <troupe/messages/foreign_memory.hpp>

namespace {

using words = std::array<std::uint64_t, 4>;

constexpr troupe::node_id b{8};
constexpr troupe::node_id c{9};

const words& mark_at(const troupe::tensor_offer& offer) { return *reinterpret_cast<const words*>(offer.mark); }

}  // namespace

BOOST_AUTO_TEST_SUITE(direct)

BOOST_AUTO_TEST_CASE(a_mark_lies_here_until_its_node_is_forgotten) {  // DM-1
  troupe::transfers::direct_memory all;
  for (int round = 0; round < 2; ++round) {
    troupe::tensor_offer of_b;
    troupe::tensor_offer of_c;
    all.keep(b, {{1, 2, 3, 4}});
    all.keep(c, {{5, 6, 7, 8}});
    all.complete(of_b, b);
    all.complete(of_c, c);
    all.keep(b, {{9, 9, 9, 9}});
    BOOST_TEST(of_b.process == troupe::this_process());
    BOOST_TEST(mark_at(of_b) == (words{1, 2, 3, 4}), boost::test_tools::per_element());
    all.forget(b);
    BOOST_TEST(mark_at(of_b) == words{}, boost::test_tools::per_element());
    BOOST_TEST(mark_at(of_c) == (words{5, 6, 7, 8}), boost::test_tools::per_element());
    all.forget(c);
  }
}

BOOST_AUTO_TEST_CASE(no_mark_is_left_when_all_end) {  // DM-1
  troupe::tensor_offer of_b;
  troupe::tensor_offer of_c;
  {
    troupe::transfers::direct_memory all;
    all.keep(b, {{1, 2, 3, 4}});
    all.keep(c, {{5, 6, 7, 8}});
    all.complete(of_b, b);
    all.complete(of_c, c);
  }
  // The system reads the memory, which is free now, as another process would.
  for (const auto& [mark, last] : {std::pair{of_b.mark, 4U}, {of_c.mark, 8U}}) {
    words left{};
    const iovec here{left.data(), sizeof left};
    const iovec there{reinterpret_cast<void*>(mark), sizeof left};
    if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == sizeof left) BOOST_TEST(left[3] != last);
  }
}

BOOST_AUTO_TEST_SUITE_END()
