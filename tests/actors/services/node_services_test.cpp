// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/services/node_services.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <caf/after.hpp>

#include "actors/lone_services.hpp"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(services_of_a_node)

BOOST_AUTO_TEST_CASE(number_messages_upwards_along_every_chain_of_them) {  // NS-1
  test::lone_services one;
  test::lone_services two;
  std::uint64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) one.services.next_number();  // messages to other nodes
    for (auto* each : {&one, &two}) {
      each->services.witness(last);
      const auto number = each->services.next_number();
      BOOST_TEST(number > last);
      last = number;
    }
  }
  one.services.witness(1);  // an old message
  one.services.witness(last);
  BOOST_TEST(one.services.next_number() > last);
}

// The node that is told a number may be told a lie.
BOOST_AUTO_TEST_CASE(number_messages_upwards_whatever_other_nodes_say) {  // NS-1, NS-3
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  test::lone_services here;
  auto last = here.services.next_number();
  for (const auto told : {most, most - 1, highest_message_number, most, std::uint64_t{1}, most}) {
    here.services.witness(told);
    const auto number = here.services.next_number();
    BOOST_TEST(number > last);
    BOOST_TEST(number < highest_message_number / 2 + (std::uint64_t{1} << 24));
    last = number;
  }
  // Nodes that talk to this one catch up with its number.
  test::lone_services other;
  for (int messages = 0; messages < 10; ++messages) other.services.witness(last);
  BOOST_TEST(other.services.next_number() > last);
}

BOOST_AUTO_TEST_CASE(free_what_is_discarded_after_the_thread_that_discards_went_on) {  // NS-2
  test::lone_services here(true);
  here.services.meet(caf::actor_cast<contracts::cpu_continuation_actor>(caf::actor_cast<caf::actor>(here.gateway)));
  here.tidy = [&] { here.services.free_discarded(); };
  bool discarding = true;
  bool freed = false;
  here.services.discard({nullptr, [&](void*) {
                           BOOST_TEST(!discarding);
                           freed = true;
                         }});
  discarding = false;
  here.gateway->receive([](const contracts::garbage_ptr&) {},
                        caf::after(test::patience) >> [] {});  // drops the message, as the compute thread does
  BOOST_TEST(freed);
}

BOOST_AUTO_TEST_CASE(free_at_once_what_is_discarded_after_the_end) {
  test::lone_services here(true);
  here.services.discard({nullptr, [](void*) {}});
  BOOST_TEST(here.services.stop_discarding().size() == 1u);
  bool freed = false;
  here.services.discard({nullptr, [&](void*) { freed = true; }});
  BOOST_TEST(freed);
}

BOOST_AUTO_TEST_CASE(call_short_what_the_settings_call_short) {
  for (const int limit : {0, 20}) {
    auto options = test::lone_services::named();
    options.short_work = std::chrono::microseconds(limit);
    test::lone_services here(true, options);
    here.services.times().note("f", 10'000);
    BOOST_TEST(here.services.times().is_short("f") == (limit > 10));
  }
}

BOOST_AUTO_TEST_CASE(pack_tensors_detached_with_the_send_that_leads_back) {
  test::lone_services here;
  const auto leaf = at::ones({2}).requires_grad_();
  const auto product = leaf * 2;
  const auto packed = here.services.pack({here.services.id(), 1}, {product, at::ones({1})}, "a call", node_id{7});
  BOOST_TEST(!packed.payload.tensors[0].requires_grad());
  BOOST_TEST((packed.payload.requires_grad == std::vector<bool>{true, false}));
  BOOST_REQUIRE(packed.send);
  BOOST_TEST(packed.send->next_edge(0).function == product.grad_fn());
  BOOST_TEST((packed.send->message == packed.payload.message));
  BOOST_TEST(!here.services.pack({}, {product}, "a call", node_id{7}).send);  // no context
  BOOST_CHECK_EXCEPTION(here.services.pack({}, {at::ones({1}), at::empty({1}, at::device(at::kMeta))}, "a call", node_id{7}),
                        error,
                        [](const error& refused) { return std::string(refused.what()).starts_with("tensor 1 of a call"); });
}

BOOST_AUTO_TEST_CASE(pack_any_number_of_tensors_for_the_node_itself) {
  test::lone_services here;
  const std::vector<at::Tensor> many(65'537, at::ones({}));
  BOOST_TEST(here.services.pack({}, many, "a call", here.services.id()).payload.tensors.size() == many.size());
  BOOST_CHECK_EXCEPTION(here.services.pack({}, many, "a call", node_id{7}), error,
                        [](const error& refused) { return refused.code() == errc::unsupported_tensor; });
}

BOOST_AUTO_TEST_SUITE_END()
