// SPDX-License-Identifier: BSD-3-Clause
// Reads from the memory of another process, alone and into arriving tensors.
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/foreign_memory.hpp>
#include <troupe/messages/messages.hpp>

#include "support/resident_memory.hpp"

using namespace troupe;

namespace {

constexpr node_id sender{7};
constexpr node_id another{8};
constexpr std::uint64_t one_page = arriving_tensors::least_bytes;

/// Memory of `bytes` bytes, followed by an unmapped page.
class pages {
 public:
  explicit pages(std::uint64_t bytes) : bytes_(bytes) {
    at_ = static_cast<unsigned char*>(
      ::mmap(nullptr, bytes + one_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ::munmap(at_ + bytes, one_page);
  }
  ~pages() { ::munmap(at_, bytes_); }
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;
  unsigned char* data() const { return at_; }
  std::uint64_t address(std::uint64_t offset = 0) const { return reinterpret_cast<std::uintptr_t>(at_) + offset; }

 private:
  unsigned char* at_;
  std::uint64_t bytes_;
};

/// A process that has a copy of this process's memory at the same addresses, and does nothing.
class copy_of_this_process {
 public:
  copy_of_this_process() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) ::pause();
  }
  ~copy_of_this_process() { end(); }
  copy_of_this_process(const copy_of_this_process&) = delete;
  copy_of_this_process& operator=(const copy_of_this_process&) = delete;
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::uint64_t number() const { return static_cast<std::uint64_t>(pid_); }

 private:
  ::pid_t pid_;
};

/// Another process that has a mark and bytes of which byte i is i % 251. In this process these bytes are zero.
struct other_process {
  static constexpr std::uint64_t bytes = 40 * one_page;

  other_process() : elements(bytes), mark_page(one_page) {
    for (std::uint64_t i = 0; i < bytes; ++i) elements.data()[i] = static_cast<unsigned char>(i % 251);
    std::memcpy(mark_page.data(), given.words.data(), sizeof given.words);
    process.emplace();
    std::memset(elements.data(), 0, bytes);
    std::memset(mark_page.data(), 0, one_page);
    memory = {process->number(), mark_page.address()};
  }

  tensor_offer offer(std::uint64_t offset, std::uint64_t size, std::uint64_t total = bytes) const {
    return {sender, 1, total, offset, size, elements.address(offset), memory.process, memory.mark, {}};
  }

  memory_mark given{{1, 2, 3, ~std::uint64_t{0}}};
  pages elements;
  pages mark_page;
  std::optional<copy_of_this_process> process;
  foreign_memory memory;
};

std::optional<error> read(arriving_tensors& all, const tensor_offer& offer) {
  arriving_tensors::prepared_piece piece;
  auto failed = all.prepare(offer, piece);
  return failed ? failed : all.read(offer, piece);
}

bool counts_up(const void* elements, std::uint64_t from, std::uint64_t size) {
  const auto* at = static_cast<const unsigned char*>(elements);
  for (std::uint64_t i = 0; i < size; ++i)
    if (at[i] != (from + i) % 251) return false;
  return true;
}

void check(const std::optional<error>& failed, errc code, const std::string& text, const char* what) {
  BOOST_TEST_CONTEXT(what) {
    BOOST_REQUIRE(failed.has_value());
    BOOST_TEST(static_cast<int>(failed->code()) == static_cast<int>(code), failed->what());
    BOOST_TEST(std::string(failed->what()).find(text) != std::string::npos, failed->what());
  }
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(memory_of_others, other_process)

BOOST_AUTO_TEST_CASE(the_memory_of_a_process_that_holds_the_mark_is_read) {
  std::vector<unsigned char> to(3 * one_page);
  BOOST_TEST(!memory.read(given, elements.address(one_page + 5), to.data(), to.size()));
  BOOST_TEST(counts_up(to.data(), one_page + 5, to.size()));
}

BOOST_AUTO_TEST_CASE(elements_of_a_process_that_gives_up_the_mark_meanwhile_are_refused) {  // FM-1
  const auto changing = ::fork();
  if (changing == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto* const first = reinterpret_cast<volatile std::uint64_t*>(mark_page.data());
    std::memcpy(mark_page.data(), given.words.data(), sizeof given.words);
    for (std::uint64_t turn = 0;; ++turn) *first = (turn >> 12) % 2 == 0 ? given.words[0] : 0;
  }
  std::vector<unsigned char> to(bytes);
  const foreign_memory other{static_cast<std::uint64_t>(changing), mark_page.address()};
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int given_up = 0;
  while (given_up == 0 && std::chrono::steady_clock::now() < until) {
    const auto failed = other.read(given, elements.address(0), to.data(), to.size());
    if (failed && std::string(failed->what()).find("gave up the mark") != std::string::npos) ++given_up;
  }
  ::kill(changing, SIGKILL);
  ::waitpid(changing, nullptr, 0);
  BOOST_TEST(given_up > 0);
}

BOOST_AUTO_TEST_CASE(the_memory_of_any_other_process_is_refused) {  // FM-1, FM-2
  copy_of_this_process without;
  copy_of_this_process gone;
  gone.end();
  auto other = given;
  ++other.words[3];
  const auto refused = [&](std::uint64_t process, std::uint64_t mark, const memory_mark& expected, const char* text) {
    unsigned char to = 0;
    check(foreign_memory{process, mark}.read(expected, elements.address(1), &to, 1), errc::refused, text, text);
  };
  refused(memory.process, memory.mark, other, "the mark");
  refused(memory.process, memory.mark + 8, given, "the mark");
  refused(without.number(), memory.mark, given, "the mark");
  refused(memory.process, memory.mark + one_page - 16, given, "can't be read");  // the mark runs into an unmapped page
  refused(memory.process, 0, given, "can't be read");
  refused(gone.number(), memory.mark, given, "can't be read");
  std::memcpy(mark_page.data(), given.words.data(), sizeof given.words);
  for (const std::uint64_t process : {this_process(), std::uint64_t{0}, std::uint64_t{1} << 32, ~std::uint64_t{0}})
    refused(process, memory.mark, given, "no other process");
}

BOOST_AUTO_TEST_CASE(what_is_offered_in_order_is_the_elements) {  // AT-2
  arriving_tensors all;
  all.take_offers(sender, memory.process, given);
  const std::uint64_t total = 30 * one_page + 17;
  for (const auto& [offset, size] :
       {std::pair{std::uint64_t{0}, one_page}, {one_page, 29 * one_page}, {30 * one_page, std::uint64_t{17}}}) {
    BOOST_TEST(!all.take(another, 1, total));
    BOOST_TEST(!read(all, offer(offset, size, total)));
    BOOST_TEST(all.bytes() == offset + size);
  }
  const auto came = all.take(sender, 1, total);
  BOOST_REQUIRE(came);
  BOOST_TEST(counts_up(came.data(), 0, total));
  BOOST_TEST(all.bytes() == 0u);
}

BOOST_AUTO_TEST_CASE(pieces_may_be_read_in_any_order) {  // AT-2
  arriving_tensors all;
  all.take_offers(sender, memory.process, given);
  constexpr std::uint64_t total = 3 * one_page;
  std::array<tensor_offer, 3> offers;
  std::array<arriving_tensors::prepared_piece, 3> pieces;
  for (std::size_t i = 0; i < 3; ++i) {
    offers[i] = offer(i * one_page, one_page, total);
    BOOST_TEST(!all.prepare(offers[i], pieces[i]));
    BOOST_TEST(all.bytes() == 0u);
  }
  for (const std::size_t i : {2, 0, 1}) BOOST_TEST(!all.read(offers[i], pieces[i]));
  const auto came = all.take(sender, 1, total);
  BOOST_REQUIRE(came);
  BOOST_TEST(counts_up(came.data(), 0, total));
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(!all.prepare(offers[i], pieces[i]));
  BOOST_TEST(!all.read(offers[2], pieces[2]));
  BOOST_TEST(!all.take(sender, 1, total));  // the bytes before the last piece have not come
  check(all.read(offers[0], pieces[0]), errc::malformed_message, "ended before it was read",
        "a piece of a transfer that was taken");
}

BOOST_AUTO_TEST_CASE(an_offer_that_does_not_fit_or_is_not_there_ends_its_transfer) {  // AT-3
  const auto changed = [&](const std::function<void(tensor_offer&)>& change) {
    auto result = offer(one_page, one_page);
    change(result);
    return result;
  };
  const struct {
    tensor_offer offer;
    errc code;
    const char* text;
  } bad[] = {
    {changed([](auto& x) { x.offset = 2 * one_page; }), errc::malformed_message, "does not go on"},
    {changed([](auto& x) { x.total -= one_page; }), errc::malformed_message, "does not go on"},
    {changed([](auto& x) { x.bytes = bytes; }), errc::malformed_message, "beyond the end"},
    {changed([](auto& x) { x.offset = ~std::uint64_t{0}; }), errc::malformed_message, "beyond the end"},
    {changed([](auto& x) { x.bytes = one_page - 1; }), errc::malformed_message, "smaller than a page"},
    {changed([](auto& x) { x.bytes = 0; }), errc::malformed_message, "smaller than a page"},
    {changed([](auto& x) { x.total = ~std::uint64_t{0}; }), errc::malformed_message, "too large to travel"},
    {changed([](auto& x) { x.total = 0; }), errc::malformed_message, "too small to come in pieces"},
    {changed([](auto& x) { x.bytes = arriving_tensors::most_offered + 1; }), errc::malformed_message, "offered is too large"},
    {changed([&](auto& x) { x.address = elements.address(bytes - 100); }), errc::malformed_message, "holds a part only"},
    {changed([&](auto& x) { x.address = elements.address(bytes); }), errc::malformed_message, "holds a part only"},
    {changed([](auto& x) { x.address = 0; }), errc::malformed_message, "holds a part only"},
    {changed([](auto& x) { x.address = ~std::uint64_t{0} - 10; }), errc::malformed_message, "holds a part only"},
    {changed([](auto& x) { x.mark += 8; }), errc::refused, "the mark"},
    {changed([](auto& x) { x.process = this_process(); }), errc::refused, "has no mark"},  // AT-5
  };
  for (const auto& each : bad) {
    arriving_tensors all;
    all.take_offers(sender, memory.process, given);
    BOOST_TEST(!read(all, offer(0, one_page)));
    BOOST_TEST(all.bytes() == one_page);
    check(read(all, each.offer), each.code, each.text, each.text);
    BOOST_TEST(all.bytes() == 0u, each.text);
    check(read(all, offer(one_page, one_page)), errc::malformed_message, "does not go on", each.text);
  }
}

BOOST_AUTO_TEST_CASE(offers_are_read_only_of_the_process_that_got_the_mark) {  // AT-5
  arriving_tensors all;
  const auto no_mark = [&](const char* what) { check(read(all, offer(0, one_page)), errc::refused, "has no mark", what); };
  no_mark("before any mark");
  all.take_offers(another, memory.process, given);
  no_mark("the mark of another node");
  all.take_offers(sender, memory.process + 1, given);
  no_mark("the mark of another process");
  all.take_offers(sender, memory.process, given);
  BOOST_TEST(!read(all, offer(0, one_page)));
  auto newer = given;
  ++newer.words[0];
  all.take_offers(sender, memory.process, newer);
  check(read(all, offer(0, one_page)), errc::refused, "the mark that it was given", "the mark before the last one");
  all.take_offers(sender, memory.process, given);
  all.drop(sender);
  no_mark("a node that is gone");
}

BOOST_AUTO_TEST_CASE(reading_a_small_offer_reads_its_elements) {
  const auto is_read = [&](const tensor_offer& sent, bool takes = true) {
    arriving_tensors all;
    if (takes) all.take_offers(sender, memory.process, given);
    return std::pair{all.read_at_once(sent), all.bytes()};
  };
  const std::pair nothing{std::optional<errc>(), std::uint64_t{0}};
  const std::pair refused{std::optional(errc::refused), std::uint64_t{0}};
  BOOST_TEST((is_read(offer(0, bytes)) == std::pair{std::optional(errc::none), std::uint64_t{bytes}}));
  BOOST_TEST((is_read(offer(0, bytes), false) == refused));
  BOOST_TEST((is_read(offer(0, one_page)) == nothing));  // a part of a transfer
  constexpr auto too_large = arriving_tensors::most_read_at_once + 1;
  BOOST_TEST((is_read(offer(0, too_large, too_large)) == nothing));
}

BOOST_AUTO_TEST_CASE(pieces_that_wait_for_a_reader_hold_no_memory) {  // AT-1
  arriving_tensors all;
  all.take_offers(sender, memory.process, given);
  const auto large = offer(0, one_page, 0xf0000000);
  std::vector<arriving_tensors::prepared_piece> pieces(50'000);
  for (auto& each : pieces) BOOST_REQUIRE(!all.prepare(large, each));  // each one begins the transfer anew
  check(all.read(large, pieces.front()), errc::malformed_message, "ended before it was read", "an earlier begin");
  BOOST_TEST(!all.read(large, pieces.back()));
}

BOOST_AUTO_TEST_CASE(an_offer_takes_no_more_memory_than_is_read) {  // AT-1
  arriving_tensors all;
  all.take_offers(sender, memory.process, given);
  const auto before = test::resident_kib();
  for (std::uint64_t number = 0; number < 10; ++number) {
    auto large = offer(0, one_page, std::uint64_t{3} << 30);
    large.transfer = number;
    BOOST_TEST(!read(all, large));
    large.transfer += 100;
    large.bytes = arriving_tensors::most_offered;  // only the first pages are mapped
    BOOST_TEST(read(all, large).has_value());
  }
  BOOST_TEST(all.bytes() == 10 * one_page);
  BOOST_TEST(test::resident_kib() - before < 8192);
}

BOOST_AUTO_TEST_CASE(a_transfer_that_ends_or_begins_anew_while_it_is_read_leaves_nothing) {  // AT-2, AT-3
  arriving_tensors all;
  all.take_offers(sender, memory.process, given);
  const auto whole = offer(0, bytes - one_page, bytes - one_page);
  auto other = whole;
  other.address += 1;
  std::atomic<bool> done{false};
  std::thread disturbing([&] {
    while (!done) {
      all.add({sender, 1, 0, 0, {}}, {});
      (void)read(all, other);
    }
  });
  int ended = 0;
  int came = 0;
  for (int i = 0; i < 2000; ++i) {
    ended += read(all, whole) ? 1 : 0;
    if (const auto taken = all.take(sender, 1, whole.total)) {
      ++came;
      const auto last =
        static_cast<const unsigned char*>(taken.data())[whole.total - 1];  // read first, because it is written last
      BOOST_TEST(counts_up(taken.data(), last == (whole.total - 1) % 251 ? 0 : 1, whole.total));
    }
  }
  done = true;
  disturbing.join();
  all.drop(sender);
  BOOST_TEST(ended > 0);
  BOOST_TEST(came > 0);
  BOOST_TEST(all.bytes() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
