// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/memory_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <caf/after.hpp>
#include <caf/send.hpp>

#include <troupe/messages/foreign_memory.hpp>

#include "actors/lone_services.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(readers_of_memory)

namespace {

constexpr std::uint64_t page = arriving_tensors::least_bytes;
constexpr node_id sender{7};

struct fixture : test::lone_services {
  fixture() : lone_services(true) {}
  ~fixture() { caf::anon_send_exit(reader, caf::exit_reason::user_shutdown); }

  /// The offer that comes back to the gateway, or null.
  contracts::incoming_offer_ptr read(const tensor_offer& offer) {
    auto job = std::make_shared<contracts::incoming_offer>();
    job->offer = offer;
    job->given = mark;
    caf::anon_send(reader, std::move(job));
    contracts::incoming_offer_ptr back;
    gateway->receive([&](const contracts::incoming_offer_ptr& came) { back = came; }, caf::after(test::patience) >> [] {});
    return back;
  }
  tensor_offer offer_of(std::uint64_t process, std::uint64_t bytes) const {
    const auto address = [](const void* at) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(at)); };
    return {sender, 1, bytes, 0, bytes, address(elements.data()), process, address(&mark)};
  }

  const memory_mark mark{{1, 2, 3, 4}};
  std::vector<char> elements = std::vector<char>(page, 'x');
  contracts::memory_reader_actor reader = transfers::spawn_memory_reader(services);
};

/// A forked process, which has a copy of this process's memory.
struct copy_of_this_process {
  copy_of_this_process() : pid(fork()) {
    if (pid != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) pause();
  }
  ~copy_of_this_process() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  pid_t pid;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(give_every_offer_back_read_or_with_a_failure, fixture) {  // MR-1
  const auto refused = read(offer_of(this_process(), page));
  BOOST_REQUIRE(refused);
  BOOST_REQUIRE(refused->failure.has_value());
  BOOST_TEST((refused->failure->code() == errc::refused));
  const copy_of_this_process other;
  const auto malformed = read(offer_of(static_cast<std::uint64_t>(other.pid), 1));  // too small for a transfer
  BOOST_REQUIRE(malformed);
  BOOST_TEST(malformed->failure.has_value());
  const auto done = read(offer_of(static_cast<std::uint64_t>(other.pid), page));
  BOOST_REQUIRE(done);
  BOOST_TEST(!done->failure.has_value());
  const auto came = arriving.take(sender, 1, page);
  BOOST_REQUIRE(came.nbytes() == page);
  BOOST_TEST(std::memcmp(came.data(), elements.data(), page) == 0);
}

BOOST_FIXTURE_TEST_CASE(start_at_the_first_use_and_never_after_the_end, fixture) {
  transfers::lazy_memory_reader unused(services);
  BOOST_TEST(!unused.stop());
  BOOST_TEST(!unused.get());
  transfers::lazy_memory_reader used(services);
  const auto first = used.get();
  BOOST_TEST(static_cast<bool>(first));
  BOOST_TEST((used.get() == first));
  BOOST_TEST((used.stop() == first));
  caf::anon_send_exit(first, caf::exit_reason::user_shutdown);
  BOOST_TEST(!used.get());
}

BOOST_AUTO_TEST_SUITE_END()
