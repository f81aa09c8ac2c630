// SPDX-License-Identifier: BSD-3-Clause
// Large tensors between two processes of one machine. The receiver reads a tensor out of the sender's memory. Where that is not
// possible, the tensor comes in pieces.
#include <boost/test/unit_test.hpp>

#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ATen/ATen.h>
#include <caf/scoped_actor.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <troupe/actors/node_access.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/foreign_memory.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/process_cluster.hpp"
#include "support/contains.hpp"

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(direct_reads)

namespace {

using troupe::errc;
using troupe::memory_mark;
using troupe::tensor_offer;
using troupe::test::loopback_settings;

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::uint64_t page = troupe::arriving_tensors::least_bytes;

troupe::settings settings_of(const std::string& name) {
  auto result = loopback_settings(name);
  result.direct_memory = name != "without";
  if (name == "everywhere") {
    result.host = "0.0.0.0";
    result.insecure = true;
  }
  if (name == "by_caf") {
    result.network = troupe::network_kind::caf;
    result.insecure = true;
  }
  if (name == "apart") result.shared_memory = false;
  return result;
}

/// A mark and elements in the memory of the other process. The tests offer the elements in the name of that process.
struct store {
  memory_mark mark;
  at::Tensor elements = at::arange(mebibyte) % 251;
};

void add_functions(troupe::node& here) {
  here.functions().add("echo", [](troupe::call_arguments& arguments) { return troupe::call_reply{arguments.tensors}; });
  here.functions().add("zeros", [](troupe::call_arguments& arguments) {
    return troupe::call_reply{{at::zeros({troupe::get<std::int64_t>(arguments.values, "bytes")}, at::kByte)}};
  });
  here.functions().add("store", [](troupe::call_arguments& arguments) {
    static store kept;
    for (std::size_t i = 0; i < kept.mark.words.size(); ++i)
      kept.mark.words[i] = static_cast<std::uint64_t>(troupe::get<std::int64_t>(arguments.values, "word" + std::to_string(i)));
    return troupe::call_reply{
      {},
      {{"mark", static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(kept.mark.words.data()))},
       {"elements", static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(kept.elements.const_data_ptr()))}}};
  });
}

/// From now on this process has not the rights of a debugger with which root reads the memory of every process.
void give_up_reading_of_all() {
  __user_cap_header_struct who{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3];
  if (::syscall(SYS_capget, &who, rights) != 0) throw std::system_error(errno, std::generic_category(), "capget");
  for (auto* each : {&rights[0].effective, &rights[0].permitted}) *each &= ~(1U << CAP_SYS_PTRACE);
  if (::syscall(SYS_capset, &who, rights) != 0) throw std::system_error(errno, std::generic_category(), "capset");
}

void be_process(const std::string& name, std::uint16_t port) {
  if (name == "restricted") give_up_reading_of_all();
  troupe::test::be_node("direct reads", settings_of(name), port, add_functions);
}

// A global fixture, because the nursery has to be forked before this process starts a second thread.
struct shared_nursery {
  shared_nursery() { processes = &own; }
  troupe::test::nursery own{be_process};
  static inline troupe::test::nursery* processes = nullptr;
};

std::uint64_t bytes_read(const troupe::node_status& where, const std::string& from) {
  for (const auto& each : where.peers)
    if (each.who.name == from) return each.bytes_read;
  return 0;
}

/// A driver and one other process.
struct pair : troupe::test::process_cluster {
  explicit pair(const std::string& name, const std::string& driver = "driver")
      : process_cluster(*shared_nursery::processes, settings_of(driver), {name}), other(name), own(driver) {
    const auto missing = meet();
    BOOST_REQUIRE_MESSAGE(missing.empty(), missing << " does not come up");
  }

  troupe::peer there() { return driver().peer(other); }
  at::Tensor echo(const at::Tensor& x) { return there().call("echo", {x}).get().tensors.at(0); }
  /// Sends a large tensor in each direction. These first tensors leave in pieces; after them the nodes read each other's
  /// memory.
  void agree() { echo(at::zeros({mebibyte}, at::kByte)); }
  std::uint64_t read_there() { return bytes_read(there().status(), own); }
  std::uint64_t read_here() { return bytes_read(driver().status(), other); }
  bool nothing_arrives() {
    const auto until = std::chrono::steady_clock::now() + 20s;
    auto& arriving = *troupe::services_of(driver()).network.arriving;
    while (arriving.bytes() != 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return arriving.bytes() == 0;
  }

  /// Sends a request to the driver's gateway. Empty if the request fails; the reason is then in `failed`.
  template <class Answer, class Message>
  std::optional<Answer> ask(const Message& message, caf::error& failed) {
    std::optional<Answer> result;
    caf::scoped_actor self{driver().system()};
    auto request = self->request(troupe::services_of(driver()).actors.gateway, 20s, message);
    const auto fail = [&](caf::error& why) { failed = std::move(why); };
    if constexpr (std::is_same_v<Answer, bool>)
      request.receive([&] { result = true; }, fail);
    else
      request.receive([&](const Answer& came) { result = came; }, fail);
    return result;
  }
  /// Sends an offer to the driver's gateway. Returns the text of the error, whose code has to be `expected`, or an empty text.
  std::string offer(const tensor_offer& what, errc expected = errc::none) {
    caf::error failed;
    if (ask<bool>(what, failed)) return {};
    const auto reason = troupe::to_exception(failed);
    BOOST_TEST(static_cast<int>(reason.code()) == static_cast<int>(expected), reason.what());
    return reason.what();
  }
  std::optional<memory_mark> draw(troupe::node_id from, std::uint64_t process) {
    caf::error failed;
    return ask<memory_mark>(troupe::request_mark{from, process}, failed);
  }
  std::uint64_t process() const { return static_cast<std::uint64_t>(pid(other)); }

  std::string other;
  std::string own;
};

/// Makes an offer in the name of the other process. The offer is correct, so the driver would accept it.
tensor_offer good_offer(pair& cluster) {
  const auto from = cluster.address(cluster.other).id;
  const auto drawn = cluster.draw(from, cluster.process());
  BOOST_REQUIRE(drawn.has_value());
  troupe::attributes words;
  for (std::size_t i = 0; i < drawn->words.size(); ++i)
    words["word" + std::to_string(i)] = static_cast<std::int64_t>(drawn->words[i]);
  const auto stored = cluster.there().call("store", {}, words).get().values;
  const auto address = [&](const char* name) { return static_cast<std::uint64_t>(troupe::get<std::int64_t>(stored, name)); };
  return {from, 1000, 4 * page, 0, 2 * page, address("elements"), cluster.process(), address("mark"), {}};
}

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(shared_nursery);

BOOST_AUTO_TEST_CASE(large_tensors_are_read_out_of_the_other_processs_memory_bit_for_bit) {  // GW-8
  pair cluster("stage");
  cluster.agree();
  const auto before = cluster.read_here();
  const auto before_there = cluster.read_there();
  std::uint64_t sent = 0;
  for (const std::int64_t bytes : {mebibyte / 2, mebibyte + 1, 4 * mebibyte, 9 * mebibyte + 4097, mebibyte / 2, mebibyte}) {
    const auto x = at::randint(0, 256, {bytes}, at::kByte);
    BOOST_TEST(at::equal(cluster.echo(x), x));
    sent += static_cast<std::uint64_t>(bytes);
  }
  BOOST_TEST(cluster.read_there() - before_there == sent);
  BOOST_TEST(cluster.read_here() - before == sent);
  BOOST_TEST(cluster.nothing_arrives());
}

BOOST_AUTO_TEST_CASE(gradients_of_large_tensors_are_those_of_one_process) {
  pair cluster("stage");
  cluster.agree();
  auto x = at::rand({1024, 700}).requires_grad_();
  const auto before = cluster.read_here();
  troupe::context pass(cluster.driver());
  const auto y = cluster.there().call("echo", {x.t(), x * 2, x.t()}).get().tensors;
  pass.backward({(y.at(0) * y.at(1).t()).sum() + (y.at(2) * at::arange(1024.)).sum()}).get();
  auto expected = x.detach().clone().requires_grad_();
  // The order in which these are made decides on the order of the sum.
  const std::vector<at::Tensor> parts{expected.t(), expected * 2, expected.t()};
  ((parts[0] * parts[1].t()).sum() + (parts[2] * at::arange(1024.)).sum()).backward();
  BOOST_TEST(at::equal(pass.gradient(x), expected.grad()));
  BOOST_TEST(cluster.read_here() > before);
}

// Of a process without shared memory the kernel does not say which one it is.
BOOST_AUTO_TEST_CASE(who_shares_no_memory_or_is_not_on_loopback_gets_and_sends_large_tensors_in_pieces) {  // GW-8
  for (const auto& [name, driver] : {std::pair{"without", "driver"},
                                     {"stage", "without"},
                                     {"everywhere", "driver"},
                                     {"apart", "driver"},
                                     {"by_caf", "driver"}}) {
    pair cluster(name, driver);
    for (int i = 0; i < 3; ++i) {
      const auto x = at::randint(0, 256, {3 * mebibyte + i}, at::kByte);
      BOOST_TEST(at::equal(cluster.echo(x), x));
    }
    BOOST_TEST(cluster.read_there() == 0u);
    BOOST_TEST(cluster.read_here() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(nodes_of_one_process_exchange_large_tensors_in_pieces) {
  troupe::node a(loopback_settings("a"));
  troupe::node b(loopback_settings("b"));
  add_functions(b);
  a.join("127.0.0.1", b.port());
  for (int i = 0; i < 3; ++i) {
    const auto x = at::randint(0, 256, {3 * mebibyte + i}, at::kByte);
    BOOST_TEST(at::equal(a.peer("b").call("echo", {x}).get().tensors.at(0), x));
  }
  BOOST_TEST(bytes_read(a.status(), "b") == 0u);
  BOOST_TEST(bytes_read(b.status(), "a") == 0u);
}

BOOST_AUTO_TEST_CASE(a_process_that_can_not_be_read_any_more_sends_in_pieces_from_then_on) {
  pair cluster("stage");
  cluster.agree();
  BOOST_REQUIRE(cluster.draw(cluster.address("stage").id, cluster.process()));  // a new mark, which the stage does not get
  const auto before = cluster.read_here();
  for (int i = 0; i < 3; ++i) {
    const auto x = at::randint(0, 256, {9 * mebibyte + i}, at::kByte);
    BOOST_TEST(at::equal(cluster.echo(x), x));
  }
  BOOST_TEST(cluster.read_here() == before);
  BOOST_TEST(cluster.read_there() > 0u);  // the stage still reads the driver's memory
  BOOST_TEST(cluster.nothing_arrives());
}

// The system lets no process read the memory of one that can't be dumped, nor, with kernel.yama.ptrace_scope 1 or more, that of another
// one of its user. The tensors then go through the memory that both nodes share.
BOOST_AUTO_TEST_CASE(tensors_of_a_process_that_the_system_lets_nobody_read_go_through_shared_memory) {
  pair cluster("restricted");
  cluster.agree();
  const auto transport = [&] {
    for (const auto& each : cluster.driver().status().peers)
      if (each.who.name == cluster.other) return each.transport;
    return std::string("no peer");
  };
  BOOST_TEST(transport() == "shared memory");
  ::prctl(PR_SET_DUMPABLE, 0);
  const auto before = cluster.read_there();
  for (int i = 0; i < 3; ++i) {
    const auto x = at::randint(0, 256, {9 * mebibyte + i}, at::kByte);
    BOOST_TEST(at::equal(cluster.echo(x), x));
  }
  ::prctl(PR_SET_DUMPABLE, 1);
  BOOST_TEST(cluster.read_there() == before);
  BOOST_TEST(transport() == "shared memory");
  BOOST_TEST(cluster.nothing_arrives());
}

BOOST_AUTO_TEST_CASE(marks_are_drawn_only_for_nodes_that_are_up_and_of_another_process) {  // GW-8
  pair cluster("stage");
  const auto stage = cluster.address("stage").id;
  BOOST_TEST(cluster.draw(stage, cluster.process()).has_value());
  BOOST_TEST(!cluster.draw(stage, troupe::this_process()).has_value());
  // What a node says of its process does not count: it could name any process of the user.
  BOOST_TEST(!cluster.draw(stage, 1).has_value());
  BOOST_TEST(!cluster.draw(stage, static_cast<std::uint64_t>(::getppid())).has_value());
  BOOST_TEST(!cluster.draw({12345}, cluster.process()).has_value());
}

BOOST_AUTO_TEST_CASE(an_offer_that_is_wrong_is_refused_with_the_reason_and_leaves_nothing) {  // GW-8, AT-3
  pair cluster("stage");
  const auto good = good_offer(cluster);
  auto& arriving = *troupe::services_of(cluster.driver()).network.arriving;
  const struct {
    std::function<void(tensor_offer&)> change;
    errc code;
    const char* text;
  } bad[] = {
    {[](auto& x) { x.from = {12345}; }, errc::refused, "has no mark"},
    {[&](auto& x) { x.from = cluster.driver().id(); }, errc::refused, "has no mark"},
    {[](auto& x) { x.process = troupe::this_process(); }, errc::refused, "has no mark"},
    {[](auto& x) { x.process = 1; }, errc::refused, "has no mark"},
    {[](auto& x) { x.mark += 8; }, errc::refused, "the mark"},
    {[](auto& x) { x.address = 0; }, errc::malformed_message, "holds a part only"},
    {[](auto& x) { x.total = ~std::uint64_t{0}; }, errc::malformed_message, "too large to travel"},
    {[](auto& x) { x.bytes = x.total + 1; }, errc::malformed_message, "beyond the end"},
    {[](auto& x) { x.offset = page; }, errc::malformed_message, "does not go on"},
    {[](auto& x) { x.total = x.bytes = std::uint64_t{1} << 30; }, errc::malformed_message, "offered is too large"},
  };
  for (const auto& each : bad) {
    BOOST_TEST(cluster.offer(good) == "");
    BOOST_TEST(arriving.bytes() == 2 * page);
    auto wrong = good;
    wrong.offset = 2 * page;
    each.change(wrong);
    const auto why = cluster.offer(wrong, each.code);
    BOOST_TEST(troupe::test::contains(why, each.text), why);
    if (wrong.from == good.from) BOOST_TEST(arriving.bytes() == 0u, each.text);
  }
  cluster.agree();
}

BOOST_AUTO_TEST_CASE(elements_stay_until_they_are_read_or_the_reader_is_down) {  // OP-3
  pair cluster("stage");
  cluster.agree();
  std::atomic<bool> freed{false};
  std::vector<char> elements(8 * mebibyte);
  troupe::test::freeze(cluster.pid("stage"));
  auto lost = cluster.there().call("echo", {at::from_blob(
                                             elements.data(), {8 * mebibyte}, [&](void*) { freed = true; }, at::kByte)});
  while (cluster.is_up("stage")) {
    BOOST_REQUIRE(!freed || !cluster.is_up("stage"));
    std::this_thread::yield();
  }
  BOOST_CHECK_THROW(lost.get(), troupe::error);
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!freed && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  BOOST_TEST(freed);
}

BOOST_AUTO_TEST_CASE(of_a_process_that_dies_while_it_is_read_nothing_stays) {
  pair cluster("stage");
  cluster.agree();
  auto lost = cluster.there().call("zeros", {}, {{"bytes", 1024 * mebibyte}});
  while (troupe::services_of(cluster.driver()).network.arriving->bytes() == 0) std::this_thread::yield();
  cluster.signal("stage", SIGKILL);
  BOOST_CHECK_THROW(lost.get(), troupe::error);
  BOOST_TEST(cluster.nothing_arrives());
  const auto from = cluster.address("stage").id;  // the memory reader may bring a piece after the news of the death
  const std::vector<char> late(page);
  BOOST_TEST(troupe::services_of(cluster.driver())
               .network.arriving->add({from, 5, 2 * page, 0, {}}, caf::as_bytes(caf::make_span(late))) == nullptr);
  auto late_offer = std::make_shared<troupe::contracts::incoming_offer>();
  late_offer->offer.from = from;
  late_offer->offer.transfer = 5;
  caf::anon_send(troupe::services_of(cluster.driver()).actors.gateway, std::move(late_offer));
  BOOST_TEST(cluster.nothing_arrives());
}

BOOST_AUTO_TEST_SUITE_END()
