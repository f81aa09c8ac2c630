// SPDX-License-Identifier: BSD-3-Clause
// Messages between actors of one process, by the kind of actor that answers, and what a call takes of them.
#include <tuple>

#include <ATen/ATen.h>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/after.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/support/thread_actor.hpp>
#include <troupe/messages/messages.hpp>

#include "suite.hpp"

namespace troupe::bench {

namespace {

constexpr std::chrono::seconds longest_wait{20};

struct caf_config : caf::actor_system_config {
  caf_config() { load<caf::io::middleman>(); }
};

/// A call and its answer pass through an actor at either end, and its answer goes to the future that waits: exchanges of messages.
constexpr double messages_of_call = 2;

int same(int number) { return number; }

caf::behavior echo(caf::event_based_actor*) { return {same}; }
caf::behavior echo_of_broker(caf::io::broker*) { return {same}; }

/// An actor of some kind that answers each number with the number.
using maker = std::function<caf::actor(caf::actor_system&)>;

caf::actor make_scheduled(caf::actor_system& in) { return in.spawn(echo); }
caf::actor make_detached(caf::actor_system& in) { return in.spawn<caf::detached>(echo); }
caf::actor make_broker(caf::actor_system& in) { return in.middleman().spawn_broker(echo_of_broker); }
caf::actor make_delegating(caf::actor_system& in) {
  const auto behind = in.spawn(echo);
  return in.spawn([behind](caf::event_based_actor* self) -> caf::behavior {
    return {[self, behind](int number) { return self->delegate(behind, number); }};
  });
}
caf::actor make_own_thread(caf::actor_system& in) {
  return support::spawn_handlers_with_thread<caf::actor>(
    in, "bench.echo", [](const caf::actor&) { return std::tuple{[](int number) { return number; }}; });
}

template <class Answer>
void receive(caf::scoped_actor& self) {
  self->receive([](Answer) {}, caf::after(longest_wait) >> [] { throw std::runtime_error("an actor of CAF did not answer"); });
}

/// Microseconds of `once(self, actor)`, by `at_once`, in a system of CAF's. `once` runs on a thread of the program, for which `self` stands.
/// `make`: the actor that it talks to.
template <class Once>
std::vector<double> times_in_a_system(const maker& make, int at_once, int runs, Once once) {
  caf_config config;
  caf::actor_system system(config);
  std::vector<double> taken;
  {
    const auto other = make(system);
    caf::scoped_actor self{system};
    taken = times_of(runs, [&] { once(self, other); });
    self->send_exit(other, caf::exit_reason::user_shutdown);
  }
  for (auto& time : taken) time /= at_once;
  return taken;
}

/// Microseconds of a message, of `at_once` that are told, and of which only the last one is answered.
std::vector<double> told(int at_once, int runs) {
  const auto make = [](caf::actor_system& in) -> caf::actor {
    return in.spawn([](caf::event_based_actor* self) -> caf::behavior {
      return {[](int) {}, [self](const caf::actor& driver) { self->send(driver, true); }};
    });
  };
  return times_in_a_system(make, at_once, runs, [=](caf::scoped_actor& self, const caf::actor& listens) {
    for (int i = 1; i < at_once; ++i) self->send(listens, i);
    self->send(listens, caf::actor(self));
    receive<bool>(self);
  });
}

/// Microseconds of a message and its answer, with `at_once` under way. The asking actor is a thread of the program.
std::vector<double> exchanges(const maker& make, int at_once, int runs) {
  return times_in_a_system(make, at_once, runs, [=](caf::scoped_actor& self, const caf::actor& answers) {
    for (int i = 0; i < at_once; ++i) self->send(answers, i);
    for (int i = 0; i < at_once; ++i) receive<int>(self);
  });
}

/// The same, where an actor asks that has no thread of its own.
std::vector<double> exchanges_of_scheduled(int at_once, int runs) {
  const auto make = [](caf::actor_system& in) -> caf::actor {
    return in.spawn([answers = in.spawn(echo)](caf::event_based_actor* self) -> caf::behavior {
      const auto left = std::make_shared<int>(0);
      const auto who = std::make_shared<caf::actor>();
      return {[=](const caf::actor& driver, int count) {
                *left = count;
                *who = driver;
                for (int i = 0; i < count; ++i) self->send(answers, i);
              },
              [=](int) {
                if (--*left == 0) self->send(*who, true);
              }};
    });
  };
  return times_in_a_system(make, at_once, runs, [=](caf::scoped_actor& self, const caf::actor& asks) {
    self->send(asks, caf::actor(self), at_once);
    receive<bool>(self);
  });
}

/// The median time to write and read a message, in microseconds.
template <class Message>
double written_and_read(caf::actor_system& system, const Message& sample, int runs) {
  return percentile(times_of(runs,
                             [&] {
                               std::vector<char> bytes;
                               caf::binary_serializer to(system, bytes);
                               Message copy;
                               if (auto failed = to(const_cast<Message&>(sample)))
                                 throw std::runtime_error(caf::to_string(failed));
                               caf::binary_deserializer from(system, bytes);
                               if (auto failed = from(copy)) throw std::runtime_error(caf::to_string(failed));
                             }),
                    0.5);
}

plot messages_in_a_process(bool quick) {
  plot made{"A message to an actor of the same process, and its answer",
            "Lower is better. The less is under way at once, the more threads have to wake. Unless a curve says otherwise, a "
            "thread of the program asks.",
            {"messages under way at once", "", true},
            {"time of a message and its answer", "us", true}};
  const auto add = [&](const char* name, role as, const std::function<std::vector<double>(int, int)>& measure) {
    made.curves.push_back(curve_over(quick ? std::vector{1, 16} : std::vector{1, 4, 16, 64, 256}, name, as, [&](int at_once) {
      return in_own_process([&] { return measure(at_once, quick ? 5 : 20'000 / (at_once + 9)); });
    }));
  };
  const auto from_thread = [](const maker& make) {
    return [make](int at_once, int runs) { return exchanges(make, at_once, runs); };
  };
  add("told, and not answered", role::variant, told);
  add("between scheduled actors", role::variant, exchanges_of_scheduled);
  add("to a scheduled actor", role::peer, from_thread(make_scheduled));
  add("to one that delegates", role::variant, from_thread(make_delegating));
  add("to a detached actor", role::variant, from_thread(make_detached));
  add("to a broker", role::variant, from_thread(make_broker));
  add("to an actor with a thread, as troupe's workers", role::troupe, from_thread(make_own_thread));
  return made;
}

}  // namespace

std::vector<plot_definition> actor_plots() {
  return plots_of_group("messages", {{"messages_in_a_process", messages_in_a_process}});
}

call_layers layers_of_call(int runs) {
  call_layers found;
  found.caf = messages_of_call * percentile(exchanges(make_broker, 256, std::max(5, runs / 100)), 0.5);
  caf_config config;
  caf::actor_system system(config);
  const auto x = at::ones({1});
  call_request question;
  question.what = requests::function{"add"};
  question.deadline_ns = 1'000'000'000;
  call_result answer;
  found.headers = written_and_read(system, question, runs) + written_and_read(system, answer, runs);
  question.payload.tensors = {x, x};
  answer.payload.tensors = {x};
  found.tensors = written_and_read(system, question, runs) + written_and_read(system, answer, runs) - found.headers;
  return found;
}

}  // namespace troupe::bench
