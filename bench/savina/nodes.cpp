// SPDX-License-Identifier: BSD-3-Clause
#include "nodes.hpp"

#include <unistd.h>

#include <memory>

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/nodes/system_config.hpp>
#include <troupe/actors/settings.hpp>

#include "../support/other_process.hpp"
#include "message_programs.hpp"

namespace troupe::bench::savina {

/// Asks the place of a process to make an actor. The answer is its handle.
struct make {
  std::string actor;
  std::int64_t number = 0;
  std::int64_t messages = 0;
  caf::actor sink{};
  friend auto inspect(auto& by, make& x) { return by(x.actor, x.number, x.messages, x.sink); }
};

/// Asks a place to connect to others, by their ports. The answer is how many it has connected to.
struct connect_to {
  std::vector<std::uint16_t> ports;
  friend auto inspect(auto& by, connect_to& x) { return by(x.ports); }
};

namespace {

constexpr unsigned longest_life = 120;  // seconds, of each process
constexpr std::chrono::seconds longest_wait{20};

using configuration = std::unique_ptr<caf::actor_system_config>;
using configurer = std::function<configuration()>;

void add_messages(caf::actor_system_config& to) {
  to.add_message_type<make>("make").add_message_type<connect_to>("connect_to");
  to.add_message_type<begin>("begin").add_message_type<stop>("stop").add_message_type<introduce<caf::actor>>("introduce");
  to.add_message_type<ping_pong::ping>("ping_pong::ping").add_message_type<ping_pong::pong>("ping_pong::pong");
  to.add_message_type<thread_ring::token>("thread_ring::token");
  to.add_message_type<big::ping>("big::ping").add_message_type<big::pong>("big::pong");
  to.add_message_type<big::finished>("big::finished");
  to.add_message_type<chameneos::meet<caf::actor>>("chameneos::meet").add_message_type<chameneos::change>("chameneos::change");
  to.add_message_type<chameneos::over>("chameneos::over");
}

configuration of_caf(caf::atom_value policy) {
  auto made = std::make_unique<caf::actor_system_config>();
  made->load<caf::io::middleman>();
  made->set("scheduler.policy", policy);
  add_messages(*made);
  return made;
}

configuration of_node(bool shared_memory) {
  settings how;
  how.shared_memory = shared_memory;
  how.configure = add_messages;
  return std::make_unique<nodes::system_config>(how);
}

caf::actor made_here(caf::actor_system& in, const make& what) {
  using mode = spawn_mode;
  if (what.actor == "ponger") return caf_world<ping_pong>(in, mode::event_based).spawn<ping_pong::ponger>();
  if (what.actor == "member")
    return caf_world<thread_ring>(in, mode::event_based).spawn<thread_ring::member>(outcome(), what.number);
  if (what.actor == "creature")
    return caf_world<chameneos>(in, mode::event_based).spawn<chameneos::creature>(static_cast<int>(what.number % 3));
  return caf_world<big>(in, mode::event_based)
    .spawn<big::member>(what.messages, numbers(what.number), what.sink, trip_times{false});
}

/// The actor of a process that makes others there. It has a thread, because it waits for connections.
caf::behavior place(caf::event_based_actor* self) {
  return {[self](const make& what) { return made_here(self->system(), what); },
          [self](const connect_to& others) -> caf::result<std::int64_t> {
            for (const auto port : others.ports)
              if (auto other = self->system().middleman().remote_actor("127.0.0.1", port); !other) return other.error();
            return static_cast<std::int64_t>(others.ports.size());
          }};
}

/// This process and others, each with a place, and a connection between any two. To be made before this process has other threads.
class spread {
 public:
  spread(std::size_t processes, const configurer& configure) {
    for (std::size_t i = 1; i < processes; ++i)
      others_.push_back(std::make_unique<other_process>([&](int stop, const auto& tell) { serve(configure, stop, tell); }));
    std::vector<std::uint16_t> ports;
    for (const auto& each : others_) ports.push_back(each->told());
    config_ = configure();
    system_ = std::make_unique<caf::actor_system>(*config_);
    for (const auto port : ports) {
      auto found = system_->middleman().remote_actor("127.0.0.1", port);
      if (!found)
        throw std::runtime_error("expected a place at port " + std::to_string(port) + ": " + system_->render(found.error()));
      places_.push_back(*found);
    }
    for (std::size_t i = 1; i < places_.size(); ++i)
      ask<std::int64_t>(places_[i], connect_to{{ports.begin(), ports.begin() + static_cast<std::ptrdiff_t>(i)}});
  }

  caf::actor_system& system() { return *system_; }

  /// The place of the process of number `number`, where this process has number 0. Null: this process.
  const caf::actor* place_of(std::int64_t number) const {
    const auto turn = static_cast<std::size_t>(number) % (places_.size() + 1);
    return turn == 0 ? nullptr : &places_[turn - 1];
  }

  /// Asks a place. Throws std::runtime_error if it does not answer.
  template <class Answer, class Question>
  Answer ask(const caf::actor& whom, const Question& what) {
    caf::scoped_actor self{*system_};
    Answer found;
    self->request(whom, longest_wait, what)
      .receive(
        [&](const Answer& came) { found = came; },
        [&](const caf::error& problem) { throw std::runtime_error("a place did not answer: " + system_->render(problem)); });
    return found;
  }

 private:
  static void serve(const configurer& configure, int stop, const std::function<void(std::uint16_t)>& tell) {
    ::alarm(longest_life);
    const auto config = configure();
    caf::actor_system system(*config);
    const auto here = system.spawn<caf::detached>(place);
    const auto port = system.middleman().publish(here, 0, "127.0.0.1");
    if (!port) throw std::runtime_error("can't listen: " + system.render(port.error()));
    tell(*port);
    wait_for(stop);
    caf::anon_send_exit(here, caf::exit_reason::user_shutdown);
    ::_exit(0);  // actors of other processes that are gone already would be waited for
  }

  std::vector<std::unique_ptr<other_process>> others_;
  configuration config_;
  std::unique_ptr<caf::actor_system> system_;
  std::vector<caf::actor> places_;
};

// The actors that may be in any process, as orders of `make`. The other ones are in this process.
template <template <class> class Actor>
constexpr const char* spread_name = nullptr;
template <>
constexpr const char* spread_name<ping_pong::ponger> = "ponger";
template <>
constexpr const char* spread_name<thread_ring::member> = "member";
template <>
constexpr const char* spread_name<big::member> = "asker";
template <>
constexpr const char* spread_name<chameneos::creature> = "creature";

make order(const char* ponger, std::int64_t) { return {ponger, 1}; }
make order(const char* member, std::int64_t number, const outcome&, std::int64_t) { return {member, number}; }
make order(const char* creature, std::int64_t number, int) { return {creature, number}; }
make order(const char* asker, std::int64_t number, std::int64_t messages, const numbers&, const caf::actor& sink,
           const trip_times&) {
  return {asker, number, messages, sink};
}

/// A world that gives processes their turns. See caf_world.
template <class Program>
class spread_world {
 public:
  using self = typename caf_world<Program>::template self<caf::event_based_actor>;
  using ref = caf::actor;

  explicit spread_world(spread& over) : over_(over), here_(over.system(), spawn_mode::event_based) {}

  template <class Message>
  void send(const ref& to, Message message) {
    here_.send(to, std::move(message));
  }
  template <template <class> class Actor, class... Arguments>
  ref spawn(Arguments&&... arguments) {
    if constexpr (spread_name<Actor> != nullptr) {
      const auto what = order(spread_name<Actor>, next_++, arguments...);
      if (const auto* there = over_.place_of(what.number)) return over_.ask<caf::actor>(*there, what);
    }
    return here_.template spawn<Actor>(std::forward<Arguments>(arguments)...);
  }
  static result wait(outcome& found) { return found.wait(); }

 private:
  spread& over_;
  caf_world<Program> here_;
  std::int64_t next_ = 0;
};

/// The throughput of a program by the number of processes.
template <class Program>
plot_definition over_processes(const std::string& name, const std::string& title, const std::string& counted) {
  return {"processes_" + name, [=](bool quick) {
            const auto of = read_parameters(TROUPE_SAVINA_DIR "/parameters.txt", quick).at("processes_" + name);
            plot made{title,
                      "Higher is better. Each actor is in another process than the one before.",
                      {"processes", "", true},
                      {counted + " a second", ""}};
            const auto add = [&](const std::string& curve, role as, const configurer& configure) {
              const auto measure = [&](std::size_t processes) {
                return in_own_process([&] {
                  ::alarm(longest_life);
                  spread over(processes, configure);
                  std::vector<double> found;
                  for (int i = -1; i < (quick ? 1 : 3); ++i) {
                    spread_world<Program> world(over);
                    const auto took = round_in<Program>(world, of).seconds;
                    if (i >= 0) found.push_back(static_cast<double>(Program::count(of)) / took);
                  }
                  return found;
                });
              };
              made.curves.push_back(
                curve_over(quick ? std::vector<std::size_t>{2} : std::vector<std::size_t>{2, 4, 8}, curve, as, measure));
            };
            add("CAF, work stealing", role::peer, [] { return of_caf(caf::atom("stealing")); });
            add("CAF, work sharing", role::variant, [] { return of_caf(caf::atom("sharing")); });
            add("settings of a node, by TCP", role::variant, [] { return of_node(false); });
            add("settings of a node", role::troupe, [] { return of_node(true); });
            return made;
          }};
}

}  // namespace

std::vector<plot_definition> plots_over_processes() {
  return {over_processes<ping_pong>("ping_pong", "ping pong between two of several processes", "round trips"),
          over_processes<thread_ring>("thread_ring", "thread ring over processes", "messages"),
          over_processes<big>("big", "big over processes", "round trips"),
          over_processes<chameneos>("chameneos", "chameneos over processes", "meetings")};
}

}  // namespace troupe::bench::savina
