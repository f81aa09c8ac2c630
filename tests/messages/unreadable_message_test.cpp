// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/all.hpp>
#include <caf/scoped_actor.hpp>

#include <ATen/ATen.h>

#include <troupe/messages/read_errors.hpp>
#include <troupe/messages/registration.hpp>

using namespace troupe;

namespace {

struct config : caf::actor_system_config {
  config() {
    load<caf::io::middleman>();
    set("middleman.workers", 0);  // makes brokers read in their own thread
    set("scheduler.max-threads", 1);
    troupe::add_message_types(*this);
  }
};

caf::result<caf::message> refuse(caf::scheduled_actor*, caf::message_view&) {
  auto why = take_read_error();
  return why ? why : caf::error{caf::sec::unexpected_message};
}

caf::behavior answering(caf::io::broker* self) {
  self->set_default_handler(refuse);
  return {[](call_request& request) {
    call_result result;
    result.payload = std::move(request.payload);
    return result;
  }};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_broker_can_say_why_it_could_not_read_a_message_and_goes_on) {
  config here;
  config there;
  caf::actor_system server{here};
  caf::actor_system client{there};
  caf::actor broker = server.middleman().spawn_broker(answering);
  auto port = server.middleman().publish(broker, 0, "127.0.0.1");
  BOOST_REQUIRE(port);
  auto remote = client.middleman().remote_actor("127.0.0.1", *port);
  BOOST_REQUIRE(remote);
  caf::scoped_actor self{client};
  auto answer = [&](const call_request& request) {
    std::string text;
    self->request(*remote, std::chrono::seconds{30}, request)
      .receive([&](call_result& result) { text = to_string(result.payload); },
               [&](caf::error& failed) { text = to_exception(failed, "server").what(); });
    return text;
  };
  call_request request;
  request.payload.tensors = {at::ones({2})};
  BOOST_TEST(answer(request).find("Float[2]") != std::string::npos);

  call_request contradiction = request;
  contradiction.payload.requires_grad = {true, true};
  BOOST_TEST(answer(contradiction) ==
             "server: troupe.wire.CallRequest: requires_grad has not as many entries as there are tensors");

  call_request sparse;
  sparse.payload.tensors = {at::eye(2).to_sparse_csr()};
  BOOST_TEST(answer(sparse).find("perhaps because of a tensor that can't travel") != std::string::npos);

  BOOST_TEST(answer(request).find("Float[2]") != std::string::npos);
  server.middleman().unpublish(broker, *port);
  caf::anon_send_exit(broker, caf::exit_reason::user_shutdown);
}
