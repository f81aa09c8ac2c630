// SPDX-License-Identifier: BSD-3-Clause
// Tensors on devices between two processes of one machine. The receiver's device copies a tensor out of the memory of the sender's
// device. Where that is not possible, the tensor goes over the host.
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/actors/node_access.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"
#include "actors/process_cluster.hpp"
#include "support/contains.hpp"
#include "support/simulated_fixture.hpp"
#include "support/simulated_sharing.hpp"

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(device_offers)

namespace {

namespace simulated = troupe::test::simulated;
using troupe::test::becomes_true;
using troupe::test::loopback_settings;

constexpr std::int64_t many = 1 << 18;  // elements; 1 MiB of float32

troupe::settings settings_of(const std::string& name) {
  auto result = loopback_settings(name);
  result.log_level = troupe::severity::off;
  result.direct_memory = name != "without";
  if (name == "apart") result.shared_memory = false;
  if (name == "mapping") result.device_maps["stage"] = {{"simulated:0", "simulated:1"}};
  return result;
}

/// A tensor of ones whose stream is held up until open() is called.
struct late_ones {
  late_ones() {
    const c10::StreamGuard on(stream);
    tensor = at::ones({many}, at::device(simulated::device()));
  }
  void open() { gate.open(); }

  c10::Stream stream = simulated::new_stream();
  simulated::gate gate{stream};
  at::Tensor tensor;
};

void add_functions(troupe::node& here) {
  auto& functions = here.functions();
  functions.add("echo", [](troupe::call_arguments& arguments) { return troupe::call_reply{arguments.tensors}; });
  functions.add("devices", [](troupe::call_arguments& arguments) {
    std::string all;
    for (const auto& each : arguments.tensors) all += each.device().str() + " ";
    return troupe::call_reply{arguments.tensors, {{"devices", all}}};
  });
  functions.add("twice", [](troupe::call_arguments& arguments) { return troupe::call_reply{{arguments.tensors.at(0) * 2}}; });
  functions.add("host bytes", [](troupe::call_arguments&) {
    return troupe::call_reply{{}, {{"bytes", static_cast<std::int64_t>(simulated::host_bytes())}}};
  });
  functions.add("broken ones", [](troupe::call_arguments&) {
    const auto ones = at::ones({many}, at::device(simulated::device()));
    simulated::synchronize();
    static auto* const broken = new simulated::broken_device;
    static_cast<void>(broken);
    return troupe::call_reply{{ones}};
  });
  functions.add("late ones", [](troupe::call_arguments&) {
    // Held up is the stream after which the reply is made, which is the current one.
    static auto* const late = new simulated::gate(c10::impl::VirtualGuardImpl(at::kPrivateUse1).getStream(simulated::device()));
    static_cast<void>(late);
    return troupe::call_reply{{at::ones({many}, at::device(simulated::device()))}};
  });
}

void be_process(const std::string& name, std::uint16_t port) {
  simulated::install_shared();
  std::optional<simulated::out_of_reach> nothing;
  if (name == "blind") nothing.emplace();
  troupe::test::be_node("device offers", settings_of(name), port, add_functions);
}

// A global fixture, because the nursery has to be forked before this process starts a second thread.
struct shared_nursery {
  shared_nursery() { processes = &own; }
  troupe::test::nursery own{be_process};
  static inline troupe::test::nursery* processes = nullptr;
};

struct installed {
  installed() { simulated::install_shared(); }
};

troupe::peer_status status_of(const troupe::node_status& where, const std::string& whom) {
  for (const auto& each : where.peers)
    if (each.who.name == whom) return each;
  return {};
}

/// A driver and one other process.
struct pair : installed, troupe::test::process_cluster {
  explicit pair(const std::string& name = "stage", const std::string& driver = "driver")
      : process_cluster(*shared_nursery::processes, settings_of(driver), {name}), other(name), own(driver) {
    const auto missing = meet();
    BOOST_REQUIRE_MESSAGE(missing.empty(), missing << " does not come up");
  }
  ~pair() { simulated::synchronize(); }

  troupe::peer there() { return driver().peer(other); }
  at::Tensor echo(const at::Tensor& x) { return there().call("echo", {x}).get().tensors.at(0); }
  std::uint64_t read_there() { return status_of(there().status(), own).bytes_read; }
  std::uint64_t read_here() { return status_of(driver().status(), other).bytes_read; }
  std::string transport() { return status_of(driver().status(), other).transport; }
  std::string transport_there() { return status_of(there().status(), own).transport; }
  /// Sends tensors in each direction until both processes read the memory of each other's devices. The first ones go over the
  /// host.
  void agree() {
    const auto x = at::zeros({many}, at::device(simulated::device()));
    BOOST_REQUIRE(becomes_true([&] {
      echo(x);
      return read_there() > 0 && read_here() > 0;
    }));
  }
  /// Bytes that both processes have copied between host and devices.
  std::int64_t host_bytes() {
    return static_cast<std::int64_t>(simulated::host_bytes()) +
           troupe::get<std::int64_t>(there().call("host bytes").get().values, "bytes");
  }
  bool nothing_arrives() {
    auto& arriving = *troupe::services_of(driver()).network.arriving;
    return becomes_true([&] { return arriving.bytes() == 0; });
  }
  static bool nothing_is_open() {
    return becomes_true([] { return simulated::opened() == 0; });
  }

  std::string other;
  std::string own;
};

at::Tensor on_device(const at::Tensor& x, c10::DeviceIndex index = 0) { return x.to(simulated::device(index)); }

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(shared_nursery);

BOOST_AUTO_TEST_CASE(no_large_tensor_of_a_device_passes_the_host_between_processes) {
  pair cluster;
  cluster.agree();
  const auto x = on_device(at::randn({many}));
  const auto before = cluster.host_bytes();
  const auto read = cluster.read_there();
  std::vector<at::Tensor> back;
  for (int i = 0; i < 4; ++i) back.push_back(cluster.echo(x));
  BOOST_TEST(cluster.host_bytes() == before);
  BOOST_TEST(cluster.read_there() - read == 4 * x.nbytes());
  for (const auto& each : back) {
    BOOST_TEST(each.device().str() == "simulated:0");
    BOOST_TEST(at::equal(each.cpu(), x.cpu()));
  }
  BOOST_TEST(cluster.transport() == "shared memory");
}

BOOST_AUTO_TEST_CASE(tensors_of_all_kinds_come_back_with_their_bits) {
  pair cluster;
  cluster.agree();
  const auto whole = at::arange(3 * many, at::kFloat).reshape({3, many});
  const auto large = on_device(whole);
  const std::vector<at::Tensor> sent{large,
                                     large,
                                     large.t(),
                                     large.narrow(1, 17, many / 2),
                                     on_device(whole, 1),
                                     on_device(at::ones({5})),
                                     on_device(whole > 12),
                                     on_device(whole.to(at::kBFloat16)),
                                     whole,
                                     {},
                                     at::empty({0, 3}, at::device(simulated::device()))};
  const auto back = cluster.there().call("echo", sent).get().tensors;
  BOOST_REQUIRE(back.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    BOOST_TEST_CONTEXT(i) {
      BOOST_REQUIRE(back[i].defined() == sent[i].defined());
      if (!sent[i].defined()) continue;
      BOOST_TEST(back[i].device().str() == sent[i].device().str());
      BOOST_TEST(at::equal(back[i].cpu(), sent[i].cpu()));
    }
  }
  back[0].add_(1);
  BOOST_TEST(at::equal(back[1].cpu(), whole));  // the two have memory of their own
}

BOOST_AUTO_TEST_CASE(gradients_of_tensors_of_devices_are_those_of_one_process) {
  pair cluster;
  cluster.agree();
  auto x = on_device(at::rand({512, 700})).requires_grad_();
  const auto before = cluster.host_bytes();
  const auto read = cluster.read_here();
  troupe::context pass(cluster.driver());
  const auto y = cluster.there().call("twice", {x}).get().tensors.at(0);
  pass.backward({at::tanh(y * y).sum()}).get();
  const auto gradient = pass.gradient(x);
  BOOST_TEST(cluster.host_bytes() - before < static_cast<std::int64_t>(x.nbytes()) / 100);
  BOOST_TEST(cluster.read_here() - read >= 2 * x.nbytes());
  auto expected = x.detach().clone().requires_grad_();
  const auto twice = expected * 2;
  at::tanh(twice * twice).sum().backward();
  BOOST_TEST(at::equal(gradient.cpu(), expected.grad().cpu()));
}

BOOST_AUTO_TEST_CASE(a_late_tensor_delays_no_other_message_and_is_not_read_too_early) {
  pair cluster;
  cluster.agree();
  late_ones late;
  std::optional<troupe::future<troupe::call_reply>> waits;
  {
    const c10::StreamGuard on(late.stream);
    waits.emplace(cluster.there().call("echo", {late.tensor * 3}));
  }
  BOOST_TEST(at::equal(cluster.echo(at::ones({5})), at::ones({5})));
  const auto x = on_device(at::full({100}, 2.0F));
  BOOST_TEST(at::equal(cluster.echo(x).cpu(), x.cpu()));
  const auto large = at::full({many}, 4.0F);  // as late, it leaves ahead of its message
  BOOST_TEST(at::equal(cluster.echo(large), large));
  const auto elsewhere = on_device(large, 1);
  BOOST_TEST(at::equal(cluster.echo(elsewhere).cpu(), large));
  BOOST_TEST(!waits->ready());
  late.open();
  BOOST_TEST(at::equal(waits->get().tensors.at(0).cpu(), at::full({many}, 3.0F)));
}

BOOST_AUTO_TEST_CASE(tensors_go_on_from_the_device_on_which_they_came_to_that_of_the_map) {
  pair cluster("stage", "mapping");
  cluster.agree();
  const auto x = on_device(at::randn({many}));
  const auto reply = cluster.there().call("devices", {x}).get();
  BOOST_TEST(troupe::get<std::string>(reply.values, "devices") == "simulated:1 ");
  BOOST_TEST(reply.tensors.at(0).device().str() == "simulated:0");
  BOOST_TEST(at::equal(reply.tensors.at(0).cpu(), x.cpu()));
}

BOOST_AUTO_TEST_CASE(who_reads_no_memory_or_reaches_no_device_gets_and_sends_tensors_over_the_host) {
  for (const auto& [name, driver] :
       {std::pair{"without", "driver"}, {"stage", "without"}, {"apart", "driver"}, {"blind", "driver"}}) {
    BOOST_TEST_CONTEXT(name << " and " << driver) {
      pair cluster(name, driver);
      for (int i = 0; i < 3; ++i) {
        const auto x = on_device(at::randn({many + i}));
        BOOST_TEST(at::equal(cluster.echo(x).cpu(), x.cpu()));
      }
      // Who is blind still shares its own memory. Who does not want to read also does not offer.
      const bool is_blind = cluster.other == "blind";
      if (!is_blind) BOOST_TEST(cluster.read_there() == 0U);
      if (!is_blind) BOOST_TEST(cluster.read_here() == 0U);
      BOOST_TEST(
        becomes_true([&] { return troupe::test::contains(cluster.transport(), ", tensors of devices over the host"); }));
      BOOST_TEST(cluster.nothing_arrives());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_device_that_fails_before_its_tensor_has_left_makes_the_call_fail_at_once) {
  const auto is_broken = troupe::test::says("the simulated device is broken");
  pair cluster;
  BOOST_CHECK_EXCEPTION(cluster.there().call("broken ones").get(), troupe::error, is_broken);
  const auto x = on_device(at::ones({many}));
  simulated::synchronize();
  const simulated::broken_device broken;
  BOOST_CHECK_EXCEPTION(cluster.there().call("echo", {x}).get(), troupe::error, is_broken);
  BOOST_TEST(cluster.nothing_arrives());
}

BOOST_AUTO_TEST_CASE(what_was_offered_to_a_process_that_dies_is_let_go_of) {
  pair cluster;
  cluster.agree();
  const auto before = simulated::used_bytes();
  {
    late_ones late;
    std::optional<troupe::future<troupe::call_reply>> lost;
    {
      const c10::StreamGuard on(late.stream);
      lost.emplace(cluster.there().call("echo", {late.tensor * 3}));
    }
    BOOST_REQUIRE(becomes_true([&] { return simulated::used_bytes() >= before + 2 * late.tensor.nbytes(); }));
    cluster.signal("stage", SIGKILL);
    BOOST_CHECK_EXCEPTION(lost->get(), troupe::error, troupe::test::says("stage"));
    BOOST_TEST(becomes_true([&] { return simulated::used_bytes() == before + late.tensor.nbytes(); }));
  }
}

BOOST_AUTO_TEST_CASE(memory_of_a_process_that_dies_is_closed) {
  pair cluster;
  const auto x = at::zeros({many}, at::device(simulated::device()));
  BOOST_TEST(becomes_true([&] {
    cluster.echo(x);
    return simulated::opened() > 0;
  }));
  cluster.signal("stage", SIGKILL);
  BOOST_TEST(cluster.nothing_is_open());
}

BOOST_AUTO_TEST_CASE(what_a_process_that_dies_has_offered_is_dropped) {
  pair cluster;
  cluster.agree();
  const auto before = simulated::openings();
  auto lost = cluster.there().call("late ones");
  BOOST_REQUIRE(becomes_true([&] { return simulated::openings() > before; }));
  cluster.signal("stage", SIGKILL);
  BOOST_TEST(simulated::opened() > 0U);
  BOOST_CHECK_EXCEPTION(lost.get(), troupe::error, troupe::test::says("stage"));
  BOOST_TEST(cluster.nothing_arrives());
  BOOST_TEST(cluster.nothing_is_open());
}

BOOST_AUTO_TEST_SUITE_END()
