// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/transfers/memory_reader.hpp>

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <caf/after.hpp>
#include <caf/send.hpp>

#include <troupe/messages/foreign_memory.hpp>

#include "actors/lone_services.hpp"
#include "actors/loopback_nodes.hpp"
#include "support/thread_count.hpp"

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
    arriving.take_offers(sender, offer.process, mark);
    auto job = std::make_shared<contracts::incoming_offer>();
    job->offer = offer;
    job->failure = arriving.prepare(offer, job->piece);
    if (job->failure) return job;
    caf::anon_send(reader, std::move(job));
    contracts::incoming_offer_ptr back;
    gateway->receive([&](const contracts::incoming_offer_ptr& came) { back = came; }, caf::after(test::patience) >> [] {});
    return back;
  }
  /// Waits until offers have come back: the reader uses nothing of this object any more.
  void take_back(int offers) {
    for (int i = 0; i < offers; ++i)
      gateway->receive([](const contracts::incoming_offer_ptr&) {},
                       caf::after(test::patience) >> [] { BOOST_ERROR("no offer"); });
  }
  tensor_offer offer_of(std::uint64_t process, std::uint64_t bytes) const {
    const auto address = [](const void* at) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(at)); };
    return {sender, 1, bytes, 0, bytes, address(elements.data()), process, address(&mark), {}};
  }

  const memory_mark mark{{1, 2, 3, 4}};
  std::vector<char> elements = std::vector<char>(page, 'x');
  contracts::memory_reader_actor reader =
    transfers::spawn_memory_reader(services, std::make_shared<devices::foreign_devices>());
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

BOOST_FIXTURE_TEST_CASE(start_at_the_first_offer_and_never_after_the_end, fixture) {  // MY-1
  const auto offer = [this] {
    return std::make_shared<contracts::incoming_offer>(
      contracts::incoming_offer{offer_of(this_process(), page), {}, {}, {}, {}});
  };
  transfers::lazy_memory_readers unused(services);
  BOOST_TEST(unused.stop().empty());
  BOOST_TEST(!unused.read(offer()));
  transfers::lazy_memory_readers used(services);
  const test::new_threads made;
  BOOST_TEST(used.read(offer()));
  BOOST_TEST(made.count() == 1U);
  BOOST_TEST(used.read(offer()));  // the first one has not returned
  BOOST_TEST(made.count() == 2U);
  BOOST_TEST(used.read(offer()));
  BOOST_TEST(made.count() == 2U);
  const auto all = used.stop();
  BOOST_TEST(all.size() == 2U);
  for (const auto& each : all) caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
  BOOST_TEST(!used.read(offer()));
  take_back(3);
}

BOOST_FIXTURE_TEST_CASE(end_when_nothing_was_offered_for_a_while, fixture) {  // MY-1
  services.deadlines.start();
  transfers::lazy_memory_readers all(services, std::chrono::milliseconds(1));
  const test::new_threads made;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 2; ++i)
      BOOST_TEST(all.read(std::make_shared<contracts::incoming_offer>(
        contracts::incoming_offer{offer_of(this_process(), page), {}, {}, {}, {}})));
    all.was_read();
    BOOST_TEST(made.count() == 2U);  // an offer has not returned
    all.was_read();
    BOOST_TEST(test::becomes_true([&] { return made.count() == 0U; }));
    take_back(2);
  }
  services.deadlines.stop();  // before the end of `all`, as in a node
}

BOOST_AUTO_TEST_SUITE_END()
