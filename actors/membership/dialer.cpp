// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/membership/dialer.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/io/middleman.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <troupe/actors/network/dial_thread.hpp>
#include <troupe/actors/network/shared_multiplexer.hpp>
#include <troupe/messages/caf_error.hpp>

namespace troupe::membership {

namespace {

using network::dial_thread;

/// A request to the dialer, and what the dial thread has found out about the address.
struct dialled {
  caf::typed_response_promise<caf::node_id, caf::strong_actor_ptr, std::set<std::string>> promise;  // the dialer's answer
  std::uint16_t port = 0;
  dial_thread::clock::time_point deadline = {};
  dial_thread::outcome found = {};
};
using dialled_ptr = std::shared_ptr<dialled>;

}  // namespace

}  // namespace troupe::membership

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::membership::dialled_ptr)

namespace troupe::membership {

namespace {

/// The shortest deadline of a request to the middleman. It is not 0, because the middleman's answer may be on the way when the
/// deadline of the dialer comes.
constexpr dial_thread::clock::duration least_wait = std::chrono::milliseconds(1);

using dialer_host = dialer_actor::extend<caf::reacts_to<dialled_ptr>>;

caf::error why_not_begun(const std::exception& reason) {
  const auto* refused = dynamic_cast<const std::system_error*>(&reason);
  if (refused != nullptr && refused->code() == std::errc::resource_unavailable_try_again)
    return make_error(errc::function_failed,
                      "the system gives no thread to dial with; raise the limit on the process's threads or memory");
  return make_error(reason, "dialling");
}

dialer_host::behavior_type make_dialer(dialer_host::pointer self) {
  const auto thread = dial_thread::of_process();
  const auto me = thread->new_owner();
  const auto gate = network::gate_of(self->system());
  self->attach_functor([thread, me] { thread->give_up(me); });  // the attempts hold references to this actor
  return {
    [=](caf::connect_atom, std::string& host, std::uint16_t port,
        std::int64_t left_ns) -> caf::result<caf::node_id, caf::strong_actor_ptr, std::set<std::string>> {
      auto to = std::make_shared<dialled>();
      to->port = port;
      auto promise = self->make_response_promise<caf::node_id, caf::strong_actor_ptr, std::set<std::string>>();
      to->promise = promise;
      auto done = [to, dialer = dialer_host{self}](dial_thread::outcome found) mutable {
        to->found = std::move(found);
        caf::anon_send(dialer, std::move(to));
      };
      to->deadline = dial_thread::clock::now() + std::chrono::nanoseconds(left_ns);
      try {
        thread->dial(me, gate, std::move(host), port, to->deadline, std::move(done));
      } catch (const std::exception& reason) {
        promise.deliver(why_not_begun(reason));
      }
      return promise;
    },
    [=](dialled_ptr& to) {
      if (to->found.problem) {
        to->promise.deliver(std::move(to->found.problem));
        return;
      }
      auto* const network = network::network_of(self->system());
      const auto stored =
        network == nullptr ? nullptr : network->calls().store(to->found.host, to->port, std::move(to->found.made));
      to->found.made = {};  // CAF's own network does not use this connection, and makes another one
      const auto left = std::max(to->deadline - dial_thread::clock::now(), least_wait);
      self->request(self->system().middleman().actor_handle(), left, caf::connect_atom::value, to->found.host, to->port)
        .then(
          [to, stored](caf::node_id& who, caf::strong_actor_ptr& gateway, std::set<std::string>& interface) {
            to->promise.deliver(std::move(who), std::move(gateway), std::move(interface));
          },
          [to, network, stored](caf::error& problem) {
            // The middleman has no deadline. Without this call, later requests for the address would wait for the connection
            // that the middleman has begun.
            if (problem == caf::sec::request_timeout && network != nullptr) network->give_up_calls_to(to->found.host, to->port);
            to->promise.deliver(std::move(problem));
          });
    },
  };
}

}  // namespace

dialer_actor spawn_dialer(caf::actor_system& system) { return system.spawn(make_dialer); }

}  // namespace troupe::membership
