// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/desk_actor.hpp>

#include <chrono>
#include <future>
#include <optional>
#include <string>

#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/typed_broker.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/answer_way.hpp>

namespace {

using namespace std::chrono_literals;
using line = caf::typed_actor<caf::replies_to<int>::with<int>, caf::replies_to<std::string>::with<std::string>>;

/// Asks the next desk of a line, and adds one to its answer. The last desk answers with the number.
class adding_desk {
 public:
  adding_desk(troupe::support::desk_actor self, line next) : self_(self), next_(std::move(next)) {}

  caf::result<int> number(int value) {
    if (!next_) return value;
    if (value == 0) return self_->delegate(next_, value);
    auto answer = self_->response_promise<int>();
    self_->request(next_, 10s, value)
      .then([answer](int from_next) mutable { answer.deliver(from_next + 1); },
            [answer](caf::error& why) mutable { answer.deliver(std::move(why)); });
    return answer;
  }

  /// Sends the text to this actor a moment later, and answers then.
  caf::result<std::string> text(const std::string& what) {
    if (self_->current_sender() == self_->ctrl()) {
      kept_.deliver(what);
      return what;
    }
    kept_ = self_->response_promise<std::string>();
    self_->delayed_send(self_->handle<line>(), 1ms, what + " came later");
    return kept_;
  }

 private:
  troupe::support::desk_actor self_;
  line next_;
  caf::typed_response_promise<std::string> kept_;
};

struct desk_state {
  static inline const char* name = "line";
  std::optional<adding_desk> desk;
};

template <class Self>
line::behavior_type make_line(Self self, line next) {
  auto& desk = self->state.desk.emplace(self, std::move(next));
  self->set_default_handler(caf::drop);  // the answer to its own text
  return {[&desk](int value) { return desk.number(value); }, [&desk](const std::string& what) { return desk.text(what); }};
}

struct two_hosts {
  ~two_hosts() {
    caf::scoped_actor self{system};
    for (const auto& each : {behind, broker, on_scheduler}) {
      self->send_exit(each, caf::exit_reason::user_shutdown);
      self->wait_for(each);  // a broker frees its last messages only while the system runs
    }
  }

  template <class Question>
  Question ask(const line& which, const Question& question) {
    caf::scoped_actor self{system};
    Question answer{};
    self->request(which, 30s, question)
      .receive([&](const Question& came) { answer = came; }, [](const caf::error& why) { BOOST_ERROR(caf::to_string(why)); });
    return answer;
  }

  troupe::nodes::system_config config{troupe::settings{}};
  caf::actor_system system{config};
  line on_scheduler = system.spawn(make_line<line::stateful_pointer<desk_state>>, line{});
  line broker = system.middleman().spawn_broker(make_line<line::stateful_broker_pointer<desk_state>>, on_scheduler);
  line behind = system.spawn(make_line<line::stateful_pointer<desk_state>>, broker);
};

}  // namespace

// DK-1
BOOST_AUTO_TEST_CASE(a_desk_asks_delegates_and_sends_later_in_a_broker_and_on_the_scheduler) {
  two_hosts hosts;
  BOOST_TEST(hosts.ask(hosts.on_scheduler, 7) == 7);
  BOOST_TEST(hosts.ask(hosts.broker, 7) == 8);
  BOOST_TEST(hosts.ask(hosts.behind, 7) == 9);
  BOOST_TEST(hosts.ask(hosts.behind, 0) == 0);  // delegated by both
  BOOST_TEST(hosts.ask(hosts.broker, std::string("it")) == "it came later");
  BOOST_TEST(hosts.ask(hosts.on_scheduler, std::string("it")) == "it came later");
}

// DK-1
BOOST_AUTO_TEST_CASE(a_request_to_an_actor_that_has_ended_fails_at_once) {
  two_hosts hosts;
  caf::scoped_actor self{hosts.system};
  self->send_exit(hosts.on_scheduler, caf::exit_reason::user_shutdown);
  self->wait_for(hosts.on_scheduler);
  caf::error why;
  self->request(hosts.broker, 30s, 7).receive([](int) {}, [&](const caf::error& came) { why = came; });
  BOOST_TEST((why == caf::sec::request_receiver_down));
}

// AY-1
BOOST_AUTO_TEST_CASE(another_thread_answers_a_request_once) {
  using troupe::support::answer_way;
  two_hosts hosts;
  std::promise<answer_way> ways[2];
  const auto asked = hosts.system.spawn([&](caf::event_based_actor* self) -> caf::behavior {
    return {[&, self](int which) {
      ways[which].set_value(answer_way(self));
      return self->make_response_promise<caf::typed_response_promise<int>>();
    }};
  });
  caf::scoped_actor self{hosts.system};
  auto question = self->request(asked, 30s, 0);
  auto way = ways[0].get_future().get();
  BOOST_TEST(!!way);
  way.deliver(8);
  BOOST_TEST(!way);
  BOOST_TEST(!way.asked());
  way.deliver(9);
  question.receive([](int answer) { BOOST_TEST(answer == 8); },
                   [](const caf::error& why) { BOOST_ERROR(caf::to_string(why)); });
  caf::anon_send(asked, 1);  // nobody waits for an answer
  auto no_way = ways[1].get_future().get();
  BOOST_TEST(!no_way);
  no_way.deliver(8);
  BOOST_TEST(!no_way.asked());
  caf::anon_send_exit(asked, caf::exit_reason::user_shutdown);
}
