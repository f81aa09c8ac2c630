// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/cuda/packing.hpp>

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "grid.hpp"

using namespace troupe;
using devices::cuda::packing_table;

namespace {

using bytes = std::vector<unsigned char>;

struct piece {
  std::size_t memory;  // where the piece lies among all pieces
  std::size_t size;
  std::size_t offset;  // in the buffer
};

/// Pieces side by side in one array, and a buffer, both with gaps. Both arrays are larger than what is used.
struct world {
  std::vector<piece> pieces;
  bytes memory;
  bytes buffer;

  void add(std::size_t gap, std::size_t size, std::size_t gap_in_buffer) {
    const std::size_t begin = pieces.empty() ? 32 : pieces.back().memory + pieces.back().size;
    const std::size_t offset = pieces.empty() ? 32 : pieces.back().offset + pieces.back().size;
    pieces.push_back({begin + gap, size, offset + gap_in_buffer});
  }
  void fill(std::mt19937& random) {
    memory.resize(pieces.back().memory + pieces.back().size + 64);
    buffer.resize(pieces.back().offset + pieces.back().size + 64);
    for (auto* all : {&memory, &buffer})
      for (auto& each : *all) each = static_cast<unsigned char>(random());
  }
  /// The tables that the pieces need, in the order of the pieces.
  std::vector<std::unique_ptr<packing_table>> tables() {
    std::vector<std::unique_ptr<packing_table>> made;
    made.push_back(std::make_unique<packing_table>());
    for (const auto& each : pieces) {
      if (made.back()->add(memory.data() + each.memory, each.size, each.offset)) continue;
      made.push_back(std::make_unique<packing_table>());
      BOOST_REQUIRE(made.back()->add(memory.data() + each.memory, each.size, each.offset));
    }
    return made;
  }
};

// Aligned to 16, so that the offsets of a world tell the alignment of each address.
static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ % 16 == 0);

/// Packs and unpacks the world over the grid, and compares all memory with copies made by memcpy.
void check(world& all, std::mt19937& random) {
  all.fill(random);
  const auto tables = all.tables();
  bytes packed = all.buffer;
  for (const auto& each : all.pieces) std::memcpy(packed.data() + each.offset, all.memory.data() + each.memory, each.size);
  const bytes before = all.memory;
  for (const auto& table : tables)
    test::for_each_thread(table->blocks(), random(), [&](auto at) { devices::cuda::pack_tile(*table, all.buffer.data(), at); });
  BOOST_TEST((all.buffer == packed));
  BOOST_TEST((all.memory == before));

  for (auto& each : all.buffer) each = static_cast<unsigned char>(random());
  bytes unpacked = all.memory;
  for (const auto& each : all.pieces) std::memcpy(unpacked.data() + each.memory, all.buffer.data() + each.offset, each.size);
  const bytes sent = all.buffer;
  for (const auto& table : tables)
    test::for_each_thread(table->blocks(), random(),
                          [&](auto at) { devices::cuda::unpack_tile(*table, all.buffer.data(), at); });
  BOOST_TEST((all.memory == unpacked));
  BOOST_TEST((all.buffer == sent));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(packing)

BOOST_AUTO_TEST_CASE(each_size_arrives_whole_and_nothing_beside_it) {  // KP-1
  std::mt19937 random(1);
  const std::size_t tile = packing_table::tile_bytes;
  for (const std::size_t size : {std::size_t{1}, std::size_t{3}, std::size_t{4}, std::size_t{15}, std::size_t{16},
                                 std::size_t{17}, std::size_t{4095}, std::size_t{4096}, std::size_t{4097}, std::size_t{4111},
                                 std::size_t{4112}, tile - 1, tile, tile + 1, 2 * tile - 16, 2 * tile, 3 * tile + 5})
    for (const std::size_t gap : {0, 1, 4, 12})
      for (const std::size_t gap_in_buffer : {0, 4, 7}) {
        world one;
        one.add(gap, size, gap_in_buffer);
        one.add(5, size, 3);
        check(one, random);
      }
}

BOOST_AUTO_TEST_CASE(random_pieces_arrive_whole_and_nothing_beside_them) {  // KP-1
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    world many;
    const std::size_t unit = std::size_t{1} << (random() % 5);  // words of 1 to 16 bytes
    for (std::size_t count = 1 + random() % 40; count != 0; --count) {
      const std::size_t size = random() % (random() % 8 == 0 ? 40000 : 300);
      many.add(random() % 4 * unit, size / unit * unit, random() % 4 * unit);
    }
    check(many, random);
  }
}

BOOST_AUTO_TEST_CASE(words_are_as_large_as_both_addresses_allow) {  // KP-1
  alignas(16) const unsigned char memory[64] = {};
  for (std::size_t to = 0; to < 32; ++to)
    for (std::size_t from = 0; from < 32; ++from) {
      std::uint32_t expected = 16;
      while (expected != 1 && (to % expected != 0 || from % expected != 0)) expected /= 4;
      BOOST_TEST(devices::cuda::word_bytes(memory + to, memory + from) == expected);
    }
}

BOOST_AUTO_TEST_CASE(each_thread_copies_words_that_both_addresses_allow) {        // KP-1
  constexpr std::size_t row = devices::cuda::threads_in_block * std::size_t{16};  // a word of each thread, or several
  alignas(16) unsigned char from[row + 16];
  std::memset(from, 1, sizeof(from));
  for (const std::size_t word : {16, 4, 1}) {
    alignas(16) unsigned char to[row + 16] = {};
    const std::size_t begin = word % 16;
    constexpr std::uint32_t thread = 3;
    devices::cuda::copy_tile(to + begin, from + begin, row, thread);
    alignas(16) unsigned char expected[row + 16] = {};
    for (std::size_t i = 0; i < row; ++i) expected[begin + i] = i / word % devices::cuda::threads_in_block == thread ? 1 : 0;
    BOOST_TEST(std::memcmp(to, expected, sizeof(to)) == 0, "words of " << word << " bytes");
  }
}

BOOST_AUTO_TEST_CASE(a_full_table_says_so_and_a_second_table_takes_the_rest) {  // KP-2
  std::mt19937 random(3);
  world many;
  for (std::size_t i = 0; i < packing_table::capacity + 10; ++i) many.add(i % 3, 20 + i % 50, i % 2);
  const auto tables = many.tables();
  BOOST_TEST(tables.size() == 2u);
  BOOST_TEST(tables[0]->size() == packing_table::capacity);
  BOOST_TEST(tables[1]->size() == 10u);
  check(many, random);

  unsigned char byte = 0;
  const auto blocks = tables[0]->blocks();
  BOOST_TEST(!tables[0]->add(&byte, 1, 0));
  BOOST_TEST(tables[0]->size() == packing_table::capacity);
  BOOST_TEST(tables[0]->blocks() == blocks);
}

BOOST_AUTO_TEST_CASE(a_table_takes_no_more_blocks_than_a_grid_has) {  // KP-2
  const auto table = std::make_unique<packing_table>();
  unsigned char byte = 0;
  const std::uint64_t half = packing_table::tile_bytes << 30;  // of the grid and one block
  BOOST_TEST(table->add(&byte, half, 0));
  BOOST_TEST(!table->add(&byte, half, half));
  BOOST_TEST(table->add(&byte, half - packing_table::tile_bytes, half));
  BOOST_TEST(table->blocks() == devices::cuda::most_blocks);
  BOOST_TEST(!table->add(&byte, 1, 2 * half));
  BOOST_TEST(!std::make_unique<packing_table>()->add(&byte, 2 * half, 0));
}

BOOST_AUTO_TEST_CASE(pieces_without_bytes_need_no_block) {  // KP-2
  const auto table = std::make_unique<packing_table>();
  unsigned char byte = 0;
  for (std::size_t i = 0; i < 2 * packing_table::capacity; ++i) BOOST_TEST(table->add(&byte, 0, i));
  BOOST_TEST(table->size() == 0u);
  BOOST_TEST(table->blocks() == 0u);
}

BOOST_AUTO_TEST_CASE(a_thousand_pieces_of_4_kib_are_one_launch_of_a_block_each) {  // KP-3
  std::mt19937 random(4);
  world many;
  for (int i = 0; i < 1000; ++i) many.add(0, 4096, 0);
  BOOST_TEST(many.tables().size() == 1u);
  BOOST_TEST(many.tables()[0]->blocks() == 1000u);
  BOOST_TEST(sizeof(packing_table) <= 32764u);
  check(many, random);
}

BOOST_AUTO_TEST_SUITE_END()
