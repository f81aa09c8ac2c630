// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/network/memory_ring.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace {

using namespace std::chrono_literals;
using troupe::network::ring_control;
using troupe::network::ring_reader;
using troupe::network::ring_writer;

constexpr auto capacity = ring_writer::capacity;
constexpr std::uint64_t impossible = ~std::uint64_t{0} - 5;

struct a_ring {
  ring_control shared;
  std::vector<char> bytes = std::vector<char>(capacity);
  ring_writer writer{shared, bytes.data()};
  ring_reader reader{shared, bytes.data()};

  std::size_t write(const std::string& what) { return writer.write(what.data(), what.size()).value(); }
  std::string read(std::size_t most) {
    std::string result(most, '\0');
    result.resize(reader.read(result.data(), most).value());
    return result;
  }
  void fill() {
    const std::string some(ring_writer::most_at_once, 'x');
    while (write(some) > 0) continue;
  }
};

char byte_at(std::uint64_t position) { return static_cast<char>(position * 7 + position / 251); }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(memory_ring, a_ring)

// RI-1: the ring becomes empty and full, and the bytes pass the end of the ring's memory, many times.
BOOST_AUTO_TEST_CASE(what_is_written_is_read_once_and_in_order) {
  std::mt19937 random(7);
  std::vector<char> chunk(200'000);
  std::uint64_t written = 0;
  std::uint64_t read = 0;
  bool same = true;
  while (read < 20 * capacity) {
    const auto most = random() % 10 == 0 ? chunk.size() : 300;
    for (auto times = random() % 8; times > 0; --times) {
      const auto bytes = 1 + random() % most;
      for (std::size_t i = 0; i < bytes; ++i) chunk[i] = byte_at(written + i);
      written += writer.write(chunk.data(), bytes).value();
    }
    for (auto times = random() % 8; times > 0; --times) {
      const auto came = reader.read(chunk.data(), 1 + random() % most).value();
      for (std::size_t i = 0; i < came; ++i) same = same && chunk[i] == byte_at(read + i);
      read += came;
    }
    BOOST_REQUIRE(same);
    BOOST_REQUIRE(reader.is_empty() == (read == written));
  }
}

BOOST_AUTO_TEST_CASE(a_quiet_ring_keeps_to_its_begin) {
  for (int i = 0; i < 10'000; ++i) {
    BOOST_REQUIRE(write("some message of no great length") == 31u);
    BOOST_REQUIRE(read(100) == "some message of no great length");
  }
  BOOST_TEST(std::all_of(bytes.begin() + 16'384, bytes.end(), [](char each) { return each == 0; }));
}

BOOST_AUTO_TEST_CASE(a_full_ring_takes_nothing_more) {
  fill();
  BOOST_TEST(write("y") == 0u);
  BOOST_TEST(read(3) == "xxx");
  BOOST_TEST(write("12345") == 3u);
  for (std::size_t left = capacity - 3; left > 0;) left -= read(std::min<std::size_t>(left, 50'000)).size();
  BOOST_TEST(read(10) == "123");
  BOOST_TEST(reader.is_empty());
}

// RI-3
BOOST_AUTO_TEST_CASE(a_reader_that_sleeps_is_to_be_woken_once) {
  reader.wake();
  write("a");
  BOOST_TEST(!writer.has_to_wake_reader());
  BOOST_TEST(!reader.may_sleep());
  read(1);
  BOOST_TEST(reader.may_sleep());
  write("b");
  BOOST_TEST(writer.has_to_wake_reader());
  write("c");
  BOOST_TEST(!writer.has_to_wake_reader());
}

// RI-3: a ring whose reader has not read yet.
BOOST_AUTO_TEST_CASE(a_new_reader_sleeps) {
  write("a");
  BOOST_TEST(writer.has_to_wake_reader());
}

// RI-3
BOOST_AUTO_TEST_CASE(a_writer_that_waits_is_to_be_woken_once_when_there_is_enough_space) {
  BOOST_TEST(!writer.may_sleep());
  fill();
  BOOST_TEST(writer.may_sleep());
  read(ring_writer::enough_space - 1);
  BOOST_TEST(!reader.has_to_wake_writer());
  read(1);
  BOOST_TEST(reader.has_to_wake_writer());
  read(1);
  BOOST_TEST(!reader.has_to_wake_writer());
  BOOST_TEST(!writer.may_sleep());
}

// RI-2
BOOST_AUTO_TEST_CASE(a_reader_refuses_counters_that_cannot_be) {
  write("abc");
  for (const auto written : {std::uint64_t{capacity + 1}, impossible}) {
    shared.written = written;
    BOOST_TEST(!reader.read(bytes.data(), 10).has_value());
  }
  shared.written = 3;
  shared.skips_from = 0;
  for (const auto to : {std::uint64_t{4}, std::uint64_t{capacity}, impossible}) {
    shared.skips_to = to;
    BOOST_TEST(!reader.read(bytes.data(), 10).has_value());
  }
  shared.skips_to = 0;
  BOOST_TEST(read(3) == "abc");
  shared.written = 2;
  BOOST_TEST(!reader.read(bytes.data(), 10).has_value());
}

// RI-2
BOOST_AUTO_TEST_CASE(a_writer_refuses_counters_that_cannot_be) {
  write("abc");
  for (const auto read : {std::uint64_t{4}, std::uint64_t{capacity + 4}, impossible}) {
    shared.read = read;
    BOOST_TEST(!writer.write("d", 1).has_value());
    BOOST_TEST(!writer.may_sleep());
  }
}

// RI-4
BOOST_AUTO_TEST_CASE(a_reader_knows_when_the_writer_has_begun) {
  BOOST_TEST(!writer.begun());
  BOOST_TEST(!reader.has_begun_after(0));
  BOOST_TEST(!reader.has_begun_after(ring_control::not_begun));
  writer.begin(17);
  BOOST_TEST(writer.begun());
  BOOST_TEST(reader.has_begun_after(17));
  BOOST_TEST(!reader.has_begun_after(16));
}

// RI-1, RI-3: if a wake is lost, both threads sleep until the test fails.
BOOST_AUTO_TEST_CASE(two_threads_that_sleep_whenever_they_may_get_everything_across) {
  constexpr std::uint64_t total = 40 * capacity;
  std::counting_semaphore<> wake_reader{0};
  std::counting_semaphore<> wake_writer{0};
  std::thread other([&] {
    std::mt19937 random(1);
    std::vector<char> chunk(100'000);
    for (std::uint64_t sent = 0; sent < total;) {
      const auto bytes = std::min<std::uint64_t>(1 + random() % (random() % 4 == 0 ? chunk.size() : 100), total - sent);
      for (std::size_t i = 0; i < bytes; ++i) chunk[i] = byte_at(sent + i);
      const auto put = writer.write(chunk.data(), bytes).value();
      sent += put;
      if (put > 0 && writer.has_to_wake_reader()) wake_reader.release();
      if (put == 0 && writer.may_sleep() && !wake_writer.try_acquire_for(20s)) return;
    }
  });
  std::mt19937 random(2);
  std::vector<char> chunk(100'000);
  std::uint64_t read = 0;
  bool same = true;
  while (read < total) {
    const auto came = reader.read(chunk.data(), 1 + random() % chunk.size()).value();
    for (std::size_t i = 0; i < came; ++i) same = same && chunk[i] == byte_at(read + i);
    read += came;
    if (came > 0 && reader.has_to_wake_writer()) wake_writer.release();
    if (came > 0 || !reader.may_sleep()) continue;
    if (!wake_reader.try_acquire_for(20s)) break;
    reader.wake();
  }
  other.join();
  BOOST_TEST(read == total);
  BOOST_TEST(same);
}

BOOST_AUTO_TEST_SUITE_END()
