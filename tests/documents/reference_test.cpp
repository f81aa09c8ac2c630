// SPDX-License-Identifier: BSD-3-Clause
// The code in the comments of the installed headers: reference_examples.py looks for it here.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>

#include <ATen/ATen.h>
#include <caf/scoped_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/library.hpp>
#include <troupe/troupe.hpp>

#include "actors/loopback_nodes.hpp"

#define TROUPE_INTERFACE "of this test"

using namespace troupe;
using test::loopback_settings;

namespace {

struct encoder : module {
  call_reply call(const std::string&, call_arguments& arguments) override { return {{arguments.tensor(0) + 1}}; }
  named_tensors parameters() override { return {}; }
};

using my_actor = caf::typed_actor<caf::replies_to<int>::with<int>>;

}  // namespace

TROUPE_LIBRARY(here) {
  troupe::add_module_type(here, "encoder", [](auto&) { return std::make_shared<encoder>(); });
}

BOOST_AUTO_TEST_SUITE(code_of_the_reference)

BOOST_AUTO_TEST_CASE(a_library_adds_its_modules_to_a_node_of_its_interface) {
  node here(loopback_settings("here"));
  BOOST_TEST(troupe_library("of another troupe", &here) == std::string(TROUPE_INTERFACE));
  BOOST_CHECK_THROW(here.self().create("encoder"), error);
  BOOST_TEST(troupe_library(TROUPE_INTERFACE, &here) == std::string(TROUPE_INTERFACE));
  const auto made = here.self().create("encoder");
  BOOST_TEST(made.call("forward", {at::ones({})}).get().tensor(0).item<double>() == 2);
}

BOOST_AUTO_TEST_CASE(attributes_are_named_values) {
  const attributes values = {{"width", 128}, {"causal", true}};
  BOOST_TEST(troupe::get<int>(values, "width") == 128);
  BOOST_TEST(troupe::get<bool>(values, "causal"));
}

BOOST_AUTO_TEST_CASE(a_device_map_is_written_as_devices_or_as_their_names) {
  const auto map = device_map{{"cuda:0", "cuda:1"}, {"cpu", "cuda:0"}};
  BOOST_TEST(map.text() == "cpu=cuda:0, cuda:0=cuda:1");
  settings options;
  options.device_maps["stage1"] = {{"cuda:0", "cuda:1"}, {"cpu", "cuda:0"}};
  BOOST_CHECK(device_map::of(options.device_maps.at("stage1")) == map);
}

BOOST_AUTO_TEST_CASE(a_published_actor_is_a_handle_of_its_interface) {
  node here(loopback_settings("here"));
  const auto doubler = here.system().spawn([]() -> my_actor::behavior_type { return {[](int x) { return 2 * x; }}; });
  here.publish("doubler", caf::actor_cast<caf::strong_actor_ptr>(doubler));
  const auto found = caf::actor_cast<my_actor>(here.self().actor("doubler"));
  caf::scoped_actor self{here.system()};
  self->request(found, std::chrono::seconds(20), 21)
    .receive([](int x) { BOOST_TEST(x == 42); }, [](const caf::error&) { BOOST_ERROR("expected an answer"); });
}

BOOST_AUTO_TEST_CASE(a_team_runs_functions_of_a_pass) {
  node here(loopback_settings("here"));
  const auto leaf = at::arange(3, at::kFloat).set_requires_grad(true);
  const auto loss = (leaf * leaf).sum();
  worker_team team(here, 3);
  backward({loss}, {}, {.workers = &team});
  BOOST_TEST(at::equal(leaf.grad(), 2 * leaf));
}

BOOST_AUTO_TEST_SUITE_END()
