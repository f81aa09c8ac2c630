// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/node_services.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <caf/after.hpp>

#include "actors/lone_services.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(services_of_a_node)

BOOST_AUTO_TEST_CASE(free_what_is_discarded_after_the_thread_that_discards_went_on) {  // GB-1
  test::lone_services here(true);
  here.services.actors.continuation =
    caf::actor_cast<contracts::cpu_continuation_actor>(caf::actor_cast<caf::actor>(here.gateway));
  here.tidy = [&] { here.services.garbage.free_all(); };
  bool discarding = true;
  bool freed = false;
  here.services.garbage.add({nullptr, [&](void*) {
                               BOOST_TEST(!discarding);
                               freed = true;
                             }});
  discarding = false;
  here.gateway->receive([](const contracts::discarded&) {},
                        caf::after(test::patience) >> [] {});  // drops the message, as the compute thread does
  BOOST_TEST(freed);
}

BOOST_AUTO_TEST_CASE(free_at_once_what_is_discarded_after_the_end) {
  test::lone_services here(true);
  here.services.garbage.add({nullptr, [](void*) {}});
  BOOST_TEST(here.services.garbage.stop().all.size() == 1u);
  bool freed = false;
  here.services.garbage.add({nullptr, [&](void*) { freed = true; }});
  BOOST_TEST(freed);
}

BOOST_AUTO_TEST_CASE(call_short_what_the_settings_call_short) {
  for (const int limit : {0, 20}) {
    auto options = test::lone_services::named();
    options.short_work = std::chrono::microseconds(limit);
    test::lone_services here(true, options);
    here.services.times.note("f", 10'000);
    BOOST_TEST(here.services.times.is_short("f") == (limit > 10));
  }
}

BOOST_AUTO_TEST_CASE(pack_tensors_detached_with_the_send_that_leads_back) {
  test::lone_services here;
  const auto leaf = at::ones({2}).requires_grad_();
  const auto product = leaf * 2;
  const auto packed = here.services.outbox.pack({here.services.self.id(), 1}, {product, at::ones({1})}, "a call", node_id{7});
  BOOST_TEST(!packed.payload.tensors[0].requires_grad());
  BOOST_TEST((packed.payload.requires_grad == std::vector<bool>{true, false}));
  BOOST_REQUIRE(packed.send);
  BOOST_TEST(packed.send->next_edge(0).function == product.grad_fn());
  BOOST_TEST((packed.send->message == packed.payload.message));
  BOOST_TEST(!here.services.outbox.pack({}, {product}, "a call", node_id{7}).send);  // no context
  BOOST_CHECK_EXCEPTION(
    here.services.outbox.pack({}, {at::ones({1}), at::empty({1}, at::device(at::kMeta))}, "a call", node_id{7}), error,
    [](const error& refused) { return std::string(refused.what()).starts_with("tensor 1 of a call"); });
}

BOOST_AUTO_TEST_CASE(pack_any_number_of_tensors_for_the_node_itself) {
  test::lone_services here;
  const std::vector<at::Tensor> many(65'537, at::ones({}));
  BOOST_TEST(here.services.outbox.pack({}, many, "a call", here.services.self.id()).payload.tensors.size() == many.size());
  BOOST_CHECK_EXCEPTION(here.services.outbox.pack({}, many, "a call", node_id{7}), error,
                        [](const error& refused) { return refused.code() == errc::unsupported_tensor; });
}

BOOST_AUTO_TEST_SUITE_END()
