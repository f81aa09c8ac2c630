// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <troupe/messages/tensor_memory.hpp>

#include "support/contains.hpp"
#include "support/resident_memory.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(memory_of_arriving_tensors)

namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

}  // namespace

BOOST_AUTO_TEST_CASE(a_block_takes_no_memory_before_something_is_written_to_it) {  // TM-1
  tensor_memory memory;
  const auto before = test::resident_kib();
  auto block = memory.make(64 * mebibyte);
  BOOST_TEST(test::resident_kib() - before < 4096);
  std::memset(block.mutable_data(), 1, block.nbytes());
  BOOST_TEST(test::resident_kib() - before > 60 * 1024);
}

BOOST_AUTO_TEST_CASE(freed_memory_is_used_again_up_to_a_limit) {  // TM-2
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  auto memory = std::make_unique<tensor_memory>();
  auto first = memory->make(5 * mebibyte);
  const void* was = first.data();
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(was) % 64 == 0u);
  first = {};
  BOOST_TEST(memory->kept() > 5 * mebibyte);
  BOOST_TEST(memory->make(7 * mebibyte).data() != was);  // the block is too small for this
  BOOST_TEST(memory->make(3 * mebibyte).data() != was);  // the block is too large for this
  auto second = memory->make(5 * mebibyte - 100);
  BOOST_TEST(second.data() == was);
  std::vector<c10::Storage> many;
  for (int i = 0; i < 30; ++i) many.push_back(memory->make(4 * mebibyte));
  many.clear();
  BOOST_TEST(memory->kept() <= tensor_memory::kept_bytes);
  BOOST_TEST(memory->kept() > tensor_memory::kept_bytes / 2);
  const auto kept = memory->kept();
  memory->make(tensor_memory::kept_bytes + 1);  // displaces no block
  BOOST_TEST(memory->kept() == kept);
  memory.reset();  // a storage may outlive the memory object
  std::memset(second.mutable_data(), 1, second.nbytes());
}

BOOST_AUTO_TEST_CASE(memory_that_was_not_used_for_a_while_is_freed_down_to_a_limit) {  // TM-3
  tensor_memory memory(512 * mebibyte);
  const auto use = [&](int blocks) {
    std::vector<c10::Storage> all;
    for (int i = 0; i < blocks; ++i) all.push_back(memory.make(40 * mebibyte - 4096));
  };
  use(6);
  BOOST_TEST(memory.kept() == 240 * mebibyte);
  BOOST_TEST(memory.trim());  // all were in use since the start
  BOOST_TEST(memory.kept() == 240 * mebibyte);
  use(4);
  BOOST_TEST(memory.trim());
  BOOST_TEST(memory.kept() == 160 * mebibyte);
  BOOST_TEST(memory.trim());  // not all at once
  BOOST_TEST(memory.kept() == 80 * mebibyte);
  BOOST_TEST(!memory.trim());
  BOOST_TEST(memory.kept() == 40 * mebibyte);
  BOOST_TEST(!memory.trim());
  BOOST_TEST(memory.kept() == 40 * mebibyte);
  use(20);
  BOOST_TEST(memory.kept() == 480 * mebibyte);
}

BOOST_AUTO_TEST_CASE(blocks_in_use_stay_though_others_are_freed) {  // TM-3
  tensor_memory memory(512 * mebibyte);
  auto large = memory.make(150 * mebibyte);
  auto small = memory.make(90 * mebibyte);
  large = {};
  small = {};
  BOOST_TEST(memory.trim());
  const auto* const used = memory.make(150 * mebibyte).data();
  BOOST_TEST(memory.trim());
  BOOST_TEST(memory.make(150 * mebibyte).data() == used);
  BOOST_TEST(memory.kept() < 151 * mebibyte);
}

BOOST_AUTO_TEST_CASE(little_is_kept_of_what_was_in_use_while_it_was_trimmed) {  // TM-3
  tensor_memory memory(512 * mebibyte);
  std::vector<c10::Storage> held;
  for (int i = 0; i < 5; ++i) held.push_back(memory.make(40 * mebibyte));
  BOOST_TEST(!memory.trim());
  held.clear();
  BOOST_TEST(memory.kept() < 64 * mebibyte);
}

/// Whether the system may use pages of 2 MiB at this address.
bool may_have_large_pages(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    if (words >> std::hex >> begin >> dash >> end && dash == '-')
      is_here = begin <= reinterpret_cast<std::uintptr_t>(address) && reinterpret_cast<std::uintptr_t>(address) < end;
    if (is_here && line.starts_with("VmFlags:")) return test::contains(line, " hg");
  }
  return false;
}

BOOST_AUTO_TEST_CASE(a_large_block_may_have_large_pages_but_for_its_first_ones) {  // TM-1
  tensor_memory memory;
  const auto block = memory.make(32 * mebibyte);
  const auto* const bytes = static_cast<const char*>(block.data());
  BOOST_TEST(!may_have_large_pages(bytes));
  const bool are_known = std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good();
  BOOST_TEST(may_have_large_pages(bytes + 20 * mebibyte) == are_known);
  const auto small = memory.make(4 * mebibyte - 4096);
  BOOST_TEST(!may_have_large_pages(static_cast<const char*>(small.data()) + 3 * mebibyte));
}

BOOST_AUTO_TEST_CASE(no_block_is_left_once_the_memory_and_its_storages_are_gone) {  // TM-2
  const auto before = test::resident_kib();
  auto memory = std::make_unique<tensor_memory>();
  std::vector<c10::Storage> blocks{memory->make(20 * mebibyte), memory->make(20 * mebibyte)};
  for (auto& each : blocks) std::memset(each.mutable_data(), 1, each.nbytes());
  blocks.pop_back();
  BOOST_TEST(test::resident_kib() - before > 36 * 1024);  // one block is kept
  memory.reset();
  blocks.clear();
  BOOST_TEST(test::resident_kib() - before < 4096);
}

BOOST_AUTO_TEST_SUITE_END()
