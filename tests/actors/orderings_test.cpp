// SPDX-License-Identifier: BSD-3-Clause
// Several nodes on one deterministic scheduler. Their actors run in a random order, so that messages overtake each other.
#include <boost/test/unit_test.hpp>

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <troupe/actors/joined_message.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/passes/burst.hpp>
#include <troupe/actors/passes/context_record.hpp>
#include <troupe/actors/passes/graph_task_actor.hpp>
#include <troupe/actors/passes/pass_terms.hpp>
#include <troupe/actors/support/broker_mailbox.hpp>
#include <troupe/engine/protocol/weight_throwing.hpp>
#include <troupe/engine/recv_backward.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/troupe.hpp>

#include "actors/cast_of_nodes.hpp"
#include "actors/temporary_folder.hpp"

using namespace std::chrono_literals;

namespace {

using namespace troupe::test;

/// The message by which a pass sends the gradient of `y` to the node that `y` came from.
troupe::propagate_gradients gradients_for(const at::Tensor& y, troupe::context_id context) {
  auto* recv = dynamic_cast<troupe::engine::recv_backward*>(y.grad_fn().get());
  BOOST_REQUIRE(recv != nullptr);
  troupe::propagate_gradients result;
  result.context = context;
  result.pass = {1};
  result.message = recv->message;
  result.gradients = {torch::ones({2})};
  result.carried = troupe::protocol::whole_weight();
  return result;
}

/// From now on messages of node "a" to node `who` go to an actor that takes every message and never answers. Returns the actor.
caf::actor freeze(cast& play, const std::string& who) {
  auto frozen = play.system.spawn([](caf::event_based_actor* self) -> caf::behavior {
    self->set_default_handler([](caf::scheduled_actor* me, caf::message_view&) -> caf::result<caf::message> {
      me->make_response_promise();  // an answer that never comes
      return caf::delegated<caf::message>();
    });
    return {[](caf::unit_t) {}};
  });
  auto& known = troupe::services_of(play.node("a")).directory;
  known.add({who, play.node(who).id(), "127.0.0.1", 0}, caf::actor_cast<caf::strong_actor_ptr>(frozen));
  return frozen;
}

/// Whether the finished call failed because its context or its caller is gone. Any other failure fails the test.
bool was_refused(const troupe::future<troupe::call_reply>& call) {
  try {
    call.get();
    return false;
  } catch (const troupe::error& e) {
    const bool lost_caller = troupe::test::contains(e.what(), "its caller went down");
    BOOST_REQUIRE_MESSAGE(e.code() == troupe::errc::unknown_context || lost_caller, e.what());
    return true;
  }
}

/// Whether the pass failed; its error has to name node "c".
bool fails_by_name_of_c(const troupe::future<troupe::done>& result) {
  try {
    result.get();
    return false;
  } catch (const troupe::error& e) {
    BOOST_REQUIRE_MESSAGE(std::string(e.what()).find("'c'") != std::string::npos, e.what());
    return true;
  }
}

/// Sends node `to` one message of each kind that nodes send each other during pass 1.
void send_all_of_a_pass(cast& play, const std::string& to, const troupe::propagate_gradients& gradients) {
  const auto there = caf::actor_cast<caf::actor>(troupe::services_of(play.node(to)).actors.gateway);
  const auto id = gradients.context;
  caf::anon_send(there, gradients);
  caf::anon_send(there, troupe::participant_quiet{id, {1}, play.node("a").id(), {}});
  caf::anon_send(there, troupe::participant_failed{id, {1}, play.node("a").id(), 0, "the test says so"});
  caf::anon_send(there, troupe::discover{id, {1}, {gradients.message}, false, false});
  caf::anon_send(there, troupe::prune{id, {1}, {gradients.message}, {}, false, false});
  play.run();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(orderings)

// CO-1, GA-1, GA-3
BOOST_AUTO_TEST_CASE(gradients_are_whole_and_equal_in_every_order) {
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    auto x = input();
    troupe::context pass(play.node("a"));
    auto y = play.through({"b", "c", "b", "c"}, x);
    auto result = pass.backward({y.sum()});
    play.run();
    BOOST_REQUIRE_MESSAGE(result.ready(), "seed " << seed << ": the pass hangs");
    result.get();
    BOOST_REQUIRE(same(play.gradient(pass, x), torch::full({2}, 16.0)));
  }
}

// CO-1: the call begins as soon as the future of the pass is complete, whichever node completed the future.
BOOST_AUTO_TEST_CASE(a_call_after_a_pass_is_given_its_gradients_in_every_order) {
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    troupe::context pass(play.node("a"));
    const auto y =
      play.call("b", "times_weight", torch::tensor({1.0, 3.0}));  // the pass ends on "b"; "a" hears of the end by a message
    auto result = pass.backward({y.sum()});
    while (!result.ready()) BOOST_REQUIRE(play.step());
    const auto gradient = play.call("b", "gathered", torch::tensor({0.0}));
    BOOST_REQUIRE_MESSAGE(same(gradient, torch::tensor({1.0, 3.0})), "seed " << seed);
  }
}

// Unused results, in a chain over nodes.
BOOST_AUTO_TEST_CASE(backward_completes_when_results_go_unused_in_every_order) {
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    auto x = input();
    troupe::context pass(play.node("a"));
    auto y = play.call("b", "times_weight", x);
    auto unused = play.call("c", "times_weight", y);
    auto also_unused = play.call("b", "times_weight", unused);
    auto z = play.call("c", "times_weight", y);
    auto result = pass.backward({z.sum()});
    play.run();
    BOOST_REQUIRE_MESSAGE(result.ready(), "seed " << seed << ": the pass hangs");
    result.get();
    BOOST_REQUIRE(same(play.gradient(pass, x), torch::full({2}, 4.0)));
  }
}

// IN-4
BOOST_AUTO_TEST_CASE(fast_mode_reports_an_unused_result_in_every_order) {
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    auto x = input();
    troupe::context pass(play.node("a"));
    auto y = play.call("b", "times_weight", x);
    auto unused = play.call("c", "times_weight", y);
    troupe::backward_options options;
    options.mode = troupe::pass_mode::fast;
    auto result = pass.backward({y.sum()}, options);
    play.run();
    BOOST_REQUIRE_MESSAGE(result.ready(), "seed " << seed << ": the pass hangs");
    BOOST_REQUIRE_EXCEPTION(result.get(), troupe::error, [](const troupe::error& e) {
      return e.code() == troupe::errc::misuse && std::string(e.what()).find("'a'") != std::string::npos;
    });
    BOOST_REQUIRE(!play.gradient(pass, x).defined());
  }
}

// GA-2, GA-4: one node fails while gradients are on their way to another node.
BOOST_AUTO_TEST_CASE(an_abort_that_crosses_results_leaves_nothing_behind) {
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    auto x = input();
    troupe::context pass(play.node("a"));
    auto good = play.call("b", "times_weight", play.call("c", "times_weight", x));
    auto bad = play.call("c", "refuse_backward", x);
    auto result = pass.backward({(good + bad).sum()});
    play.run();
    BOOST_REQUIRE_MESSAGE(result.ready(), "seed " << seed << ": the pass hangs");
    BOOST_REQUIRE_EXCEPTION(result.get(), troupe::error, [](const troupe::error& e) {
      return std::string(e.what()).find("hook refuses") != std::string::npos &&
             std::string(e.what()).find("'c'") != std::string::npos;
    });
    BOOST_REQUIRE(!play.gradient(pass, x).defined());

    auto again = play.call("b", "times_weight", x);
    auto second = pass.backward({again.sum()});
    play.run();
    BOOST_REQUIRE_MESSAGE(second.ready(), "seed " << seed << ": the second pass hangs");
    second.get();
    BOOST_REQUIRE(same(play.gradient(pass, x), torch::full({2}, 2.0)));
  }
}

// CO-1: "b" did its part of a pass that failed on another node, and no abort reached "b".
BOOST_AUTO_TEST_CASE(gradients_of_a_pass_that_failed_unheard_count_nowhere) {
  for (const bool failed : {false, true}) {
    cast play(1);
    troupe::context pass(play.node("a"));
    auto y = play.call("b", "times_weight", torch::tensor({1.0, 3.0}));
    const auto there = caf::actor_cast<caf::actor>(troupe::services_of(play.node("b")).actors.gateway);
    caf::anon_send(there, gradients_for(y, pass.id()));
    play.run();
    troupe::call_request next;
    next.what = troupe::requests::function{"gathered"};
    next.payload.context = pass.id();
    next.completed = {2};
    if (failed) next.failed = {{1}};
    caf::scoped_actor self{play.system};
    auto request = self->request(there, caf::infinite, std::move(next));
    play.run();
    request.receive([&](const troupe::call_result& result) { BOOST_TEST(result.payload.tensors.at(0).defined() == !failed); },
                    [](const caf::error& reason) { BOOST_FAIL(troupe::to_exception(reason).what()); });
  }
}

// GW-11: the pass was aborted on "b" before any message of the pass came, or the pass is complete and gathered on "b".
BOOST_AUTO_TEST_CASE(messages_of_a_pass_that_is_over_start_nothing) {
  for (const bool aborted : {false, true}) {
    cast play(1);
    troupe::context pass(play.node("a"));
    const auto y = play.call("b", "times_weight", torch::tensor({1.0, 3.0}));
    const auto gradients = gradients_for(y, pass.id());
    if (aborted) {
      caf::anon_send(caf::actor_cast<caf::actor>(troupe::services_of(play.node("b")).actors.gateway),
                     troupe::abort_pass{pass.id(), {1}});
      play.run();
    } else {
      troupe::backward_options keep;
      keep.keep_graph = true;
      auto result = pass.backward({y.sum()}, keep);
      play.run();
      result.get();
      play.call("b", "gathered", torch::ones({1}));
    }
    const auto& counts = troupe::services_of(play.node("b")).counts;
    const std::uint64_t before = counts.functions_run;
    send_all_of_a_pass(play, "b", gradients);
    BOOST_TEST(counts.graph_tasks == 0u);
    BOOST_TEST(counts.functions_run == before);
    const auto gathered = play.call("b", "gathered", torch::ones({1}));
    BOOST_TEST((aborted ? !gathered.defined() : same(gathered, torch::tensor({1.0, 3.0}))));
  }
}

// GA-2: gradients go to a node that receives them and never answers.
BOOST_AUTO_TEST_CASE(a_pass_that_cannot_end_fails_at_its_deadline) {
  cast play(1);
  auto x = input();
  troupe::context pass(play.node("a"));
  auto y = play.call("c", "times_weight", play.call("b", "times_weight", x));
  const auto frozen = freeze(play, "c");
  troupe::backward_options options;
  options.deadline = 1500ms;
  auto result = pass.backward({y.sum()}, options);
  play.run();
  BOOST_REQUIRE(!result.ready());
  for (const auto time : {1500ms, 1000ms}) {
    play.advance_time(time);
  }
  caf::anon_send_exit(frozen, caf::exit_reason::user_shutdown);
  BOOST_REQUIRE(result.ready());
  BOOST_CHECK_EXCEPTION(result.get(), troupe::error, [](const troupe::error& e) {
    BOOST_TEST_MESSAGE(e.what());
    return e.code() == troupe::errc::deadline_passed &&
           std::string(e.what()).find("1.5 s; not done with it: ") != std::string::npos &&
           std::string(e.what()).find("'c'") != std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(a_call_that_nobody_answers_fails_at_its_deadline) {
  cast play(1);
  const auto frozen = freeze(play, "c");
  auto reply = play.peer("c").call("times_weight", {torch::ones({2})});
  play.run();
  BOOST_TEST(!reply.ready());
  play.advance_time(1h);
  caf::anon_send_exit(frozen, caf::exit_reason::user_shutdown);
  BOOST_REQUIRE(reply.ready());
  BOOST_CHECK_EXCEPTION(reply.get(), troupe::error,
                        [](const troupe::error& e) { return e.code() == troupe::errc::deadline_passed; });
}

// GA-3: the gradients are asked for before the computing thread has begun, or after it has ended.
BOOST_AUTO_TEST_CASE(gradients_are_handed_out_whether_the_last_burst_is_back_or_not) {
  for (int seed = 0; seed < 20; ++seed) {
    bool answered = false;
    troupe::contracts::table_ptr gradients;
    cast play(seed);
    const troupe::context pass(play.node("a"));
    auto& here = troupe::services_of(play.node("a"));
    const auto record = troupe::services_of(play.node("a")).contexts.find(pass.id()).record;
    auto terms = troupe::passes::make_terms(record, record->follow({1}).value(), false, false);
    const auto x = input();
    terms->task->settings.roots = {torch::autograd::impl::gradient_edge((3 * x).sum())};
    terms->task->settings.root_gradients = {torch::ones({})};
    const auto task = troupe::passes::spawn_graph_task(here, std::move(terms));
    play.system.spawn([&](caf::event_based_actor* self) {
      self->send(task, troupe::support::start_atom::value);
      self->request(task, caf::infinite, troupe::support::gradients_atom::value)
        .then([&](const troupe::contracts::table_ptr& all) {
          answered = true;
          gradients = all;
        });
    });
    play.run();
    caf::anon_send(task, troupe::support::close_atom::value);
    BOOST_REQUIRE_MESSAGE(answered, "seed " << seed << ": nobody answers");
    BOOST_REQUIRE(gradients);
    BOOST_TEST(same(gradients->find(x), torch::full({2}, 3.0)));
  }
}

// GT-4: the second of two gradients does not fit.
BOOST_AUTO_TEST_CASE(a_burst_that_fails_keeps_no_gradients) {
  cast play(1);
  const troupe::context pass(play.node("a"));
  const auto fitting = gradients_for(play.call("b", "times_weight", input()), pass.id());
  const auto misshapen = gradients_for(play.call("b", "times_weight", input()), pass.id());
  auto& there = troupe::services_of(play.node("b"));
  const auto record = troupe::services_of(play.node("b")).contexts.find(pass.id()).record;
  const auto terms = troupe::passes::make_terms(record, record->follow({1}).value(), false, false);
  const auto work = troupe::passes::make_burst(*terms, troupe::passes::burst::kind::run, {});
  bool freed = false;
  std::vector<float> elements(2);
  work->deliveries.push_back(
    {fitting.message, {torch::from_blob(elements.data(), {2}, [&](void*) { freed = true; })}, {}, {}, {}});
  work->deliveries.push_back({misshapen.message, {torch::ones({3})}, {}, {}, {}});
  troupe::passes::run_burst(*work, there);
  BOOST_REQUIRE(work->failure.has_value());
  BOOST_TEST(std::string(work->failure->what()).find("[3]") != std::string::npos, work->failure->what());
  BOOST_TEST(freed);
}

BOOST_AUTO_TEST_CASE(a_gradient_that_is_said_to_repeat_into_another_shape_is_refused_before_it_is_summed) {
  cast play(1);
  const troupe::context pass(play.node("a"));
  const auto message = gradients_for(play.call("b", "times_weight", input()), pass.id()).message;
  const auto record = troupe::services_of(play.node("b")).contexts.find(pass.id()).record;
  const auto terms = troupe::passes::make_terms(record, record->follow({1}).value(), false, false);
  const auto work = troupe::passes::make_burst(*terms, troupe::passes::burst::kind::run, {});
  work->deliveries.push_back({message, {torch::ones({1, 2})}, {}, {}, {{std::int64_t{1} << 57, 2}}});
  troupe::passes::run_burst(*work, troupe::services_of(play.node("b")));
  BOOST_REQUIRE(work->failure.has_value());
  BOOST_TEST(std::string(work->failure->what()).find("is not that of the tensor that was sent") != std::string::npos,
             work->failure->what());
}

// GA-2: after a random number of steps "a" drops "c" from its directory. The actors of the pass on "a" are not told.
BOOST_AUTO_TEST_CASE(a_pass_that_can_not_tell_a_node_what_to_do_ends_in_every_order) {
  int failed = 0;
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    troupe::context pass(play.node("a"));
    const auto y = play.call("b", "times_weight", input());
    const auto unused = play.call("c", "times_weight", y);
    auto result = pass.backward({(y + play.call("c", "times_weight", y)).sum()});
    play.run_up_to(40);
    troupe::services_of(play.node("a")).directory.remove(play.node("c").id());
    play.run();
    BOOST_REQUIRE_MESSAGE(result.ready(), "seed " << seed << ": the pass hangs");
    failed += fails_by_name_of_c(result) ? 1 : 0;
  }
  BOOST_TEST(failed > 0);
  BOOST_TEST(failed < orders);
}

// GW-1
BOOST_AUTO_TEST_CASE(messages_of_a_pass_open_no_context) {
  cast play(1);
  troupe::context pass(play.node("a"));
  const auto y = play.call("b", "times_weight", input());
  send_all_of_a_pass(play, "c", gradients_for(y, pass.id()));
  caf::anon_send(caf::actor_cast<caf::actor>(troupe::services_of(play.node("c")).actors.gateway),
                 troupe::abort_pass{pass.id(), {1}});
  play.run();
  const auto& counts = troupe::services_of(play.node("c")).counts;
  BOOST_TEST(counts.contexts_opened == 0u);
  BOOST_TEST(counts.graph_tasks == 0u);
}

// GW-1: in the context of "a", an actor's message goes from "a" to "b", and another one from "b" to "d", which has not met "a".
// With half of the seeds "d" meets "a" before the pass.
BOOST_AUTO_TEST_CASE(an_actors_message_in_the_context_of_a_node_that_was_not_met_fails_the_pass) {
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    troupe::settings options;
    options.name = "d";
    play.nodes.emplace("d", std::make_unique<troupe::node>(std::move(options), play.system));
    auto& b = play.node("b");
    auto& d = play.node("d");
    const auto meet = [&](troupe::node& other) {
      d.introduce(other);
      other.introduce(d);
      play.run();
    };
    meet(b);
    const auto on_d = [&](troupe::autograd_message request) {
      const troupe::joined_scope scope(d, std::move(request));
      return scope.reply({scope.tensors().at(0) * 2});
    };
    const auto on_b = [&](troupe::autograd_message request) {
      const troupe::joined_scope scope(b, std::move(request));
      auto answer = on_d(troupe::join_graphs({b, "d", d.id()}, scope.tensors()));
      return scope.reply(troupe::joined_tensors(b, std::move(answer)));
    };
    troupe::context pass(play.node("a"));
    auto answer = on_b(troupe::join_graphs(play.peer("b"), {input()}));
    const auto y = troupe::joined_tensors(play.node("a"), std::move(answer)).at(0);
    play.run();
    if (seed % 2 == 0) meet(play.node("a"));
    auto result = pass.backward({y.sum()});
    play.run();
    BOOST_REQUIRE_MESSAGE(result.ready(), "seed " << seed << ": the pass hangs");
    BOOST_REQUIRE_EXCEPTION(result.get(), troupe::error, [](const troupe::error& e) {
      const std::string text = e.what();
      return e.code() == troupe::errc::unknown_context && text.find("node 'd'") != text.npos &&
             text.find("was never met") != text.npos;
    });
  }
}

// Sends the call to "b", where the context of the call was released or may not be opened. The call has to be refused.
void check_opens_nothing(cast& play, troupe::call_request call, const char* opened) {
  call.what = troupe::requests::function{"times_weight"};
  call.payload.tensors = {torch::ones({2})};
  caf::scoped_actor self{play.system};
  auto request = self->request(caf::actor_cast<caf::actor>(troupe::services_of(play.node("b")).actors.gateway), caf::infinite,
                               std::move(call));
  play.run();
  request.receive(
    [&](const troupe::call_result&) { BOOST_FAIL(opened); },
    [](const caf::error& reason) { BOOST_TEST((troupe::to_exception(reason).code() == troupe::errc::unknown_context)); });
}

// GW-2
BOOST_AUTO_TEST_CASE(a_call_that_comes_after_the_release_opens_nothing) {
  cast play(1);
  troupe::call_request late;
  {
    troupe::context pass(play.node("a"));
    play.call("b", "times_weight", input());
    late.payload.context = pass.id();
  }
  play.run();
  check_opens_nothing(play, std::move(late), "the released context was opened again");
}

BOOST_AUTO_TEST_CASE(calls_and_passes_that_are_refused_have_lines_in_the_log) {
  const troupe::test::temporary_folder folder;
  std::string id;
  std::string id_of_call;
  {
    cast play(1, folder.path());
    {
      troupe::context pass(play.node("a"));
      id = to_string(pass.id());
      const auto y = play.call("b", "times_weight", input());
      auto first = pass.backward({y.sum()});
      auto second = pass.backward({y.sum()});
      play.run();
      BOOST_CHECK_THROW(second.get(), troupe::error);
    }
    play.tell_down("b", "c");
    play.run();
    const troupe::context unknown_to_b(play.node("a"));
    id_of_call = to_string(unknown_to_b.id());
    troupe::call_request late;
    late.payload.context = unknown_to_b.id();
    late.payload.message = {1, play.node("c").id()};
    check_opens_nothing(play, std::move(late), "a call of a node that is down was run");
  }
  const auto a = troupe::test::read_text(folder / "a");
  BOOST_TEST(troupe::test::contains(a, "room=passes a pass of context " + id + ": refused: a backward pass of this context"),
             a);
  const auto b = troupe::test::read_text(folder / "b");
  BOOST_TEST(troupe::test::contains(b, "room=calls 'times_weight' called by node 'c' in context " + id_of_call + ": refused: "),
             b);
}

// CO-1
BOOST_AUTO_TEST_CASE(gradients_that_are_lost_have_a_line_in_the_log) {
  const troupe::test::temporary_folder folder;
  {
    cast play(1, folder.path());
    troupe::context pass(play.node("a"));
    auto x = input();
    auto result = pass.backward({play.call("b", "times_weight", x).sum()});
    play.run();
    result.get();
    auto& contexts = troupe::services_of(play.node("a")).contexts;
    const auto found = contexts.find(pass.id());
    caf::anon_send(found.record->task_of({1}), troupe::support::close_atom::value);
    play.run();
    caf::scoped_actor self{play.system};
    auto request = self->request(found.actor, caf::infinite, troupe::support::gradients_atom::value);
    play.run();
    request.receive(
      [](const troupe::contracts::gradients_ptr&) { BOOST_FAIL("gradients without their graph task"); },
      [](const caf::error& reason) { BOOST_TEST(troupe::test::contains(troupe::to_exception(reason).what(), "lost")); });
  }
  const auto a = troupe::test::read_text(folder / "a");
  BOOST_TEST(troupe::test::contains(a, "warn  node=a room=passes context "), a);
  BOOST_TEST(troupe::test::contains(a, ": the gradients of a pass on node 'a' are lost"), a);
}

// GW-5
BOOST_AUTO_TEST_CASE(a_call_of_a_node_that_is_down_opens_nothing) {
  cast play(1);
  const troupe::context pass(play.node("a"));
  play.tell_down("b", "c");
  play.run();
  troupe::call_request late;
  late.payload.context = pass.id();
  late.payload.message = {1, play.node("c").id()};
  check_opens_nothing(play, std::move(late), "a call of a node that is down was run");
  BOOST_TEST(troupe::services_of(play.node("b")).contexts.all().empty());
}

// CO-5, GW-1: the driver releases the context after a random number of steps.
BOOST_AUTO_TEST_CASE(a_release_during_a_pass_ends_it_with_an_error) {
  int cut_short = 0;
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    auto x = input();
    auto pass = std::make_unique<troupe::context>(play.node("a"));
    auto y = play.through({"b", "c", "b"}, x);
    auto result = pass->backward({y.sum()});
    play.run_up_to(40);
    pass.reset();
    play.run();
    BOOST_REQUIRE_MESSAGE(result.ready(), "seed " << seed << ": the future never completes");
    try {
      result.get();
    } catch (const troupe::error& e) {
      ++cut_short;
      BOOST_REQUIRE(e.code() == troupe::errc::unknown_context);
    }
  }
  BOOST_TEST(cut_short > 0);
  BOOST_TEST(cut_short < orders);
}

// GW-3, GW-10: a peer goes down after a random number of steps.
BOOST_AUTO_TEST_CASE(a_peer_that_goes_down_ends_the_pass_with_its_name) {
  int failed = 0;
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    auto x = input();
    troupe::context pass(play.node("a"));
    auto y = play.through({"b", "c", "b"}, x);
    auto result = pass.backward({y.sum()});
    play.run_up_to(40);
    troupe::contracts::peer_down news{{"c", play.node("c").id(), "127.0.0.1", 0}, "killed by the test"};
    caf::anon_send_exit(troupe::services_of(play.node("c")).actors.gateway, caf::exit_reason::kill);
    for (auto to : {"a", "b"}) caf::anon_send(troupe::services_of(play.node(to)).actors.gateway, news);
    play.run();
    BOOST_REQUIRE_MESSAGE(result.ready(), "seed " << seed << ": the pass hangs");
    failed += fails_by_name_of_c(result) ? 1 : 0;
  }
  BOOST_TEST(failed > 0);
  BOOST_TEST(failed < orders);
}

// GW-4, GW-12: "b" calls "c". After a random number of steps "b" dies, or is cut off from "a". "a" releases the context before
// or after the nodes have heard of that.
BOOST_AUTO_TEST_CASE(what_only_a_node_that_is_gone_knew_of_is_released_all_the_same) {
  int unknown = 0;
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    play.hand_on("b", "c");
    auto pass = std::make_unique<troupe::context>(play.node("a"));
    auto reply = play.peer("b").call("hand_on", {input()});
    play.run_up_to(40);
    unknown += !reply.ready() && troupe::services_of(play.node("c")).counts.contexts == 1 ? 1 : 0;
    if (seed % 2 == 0) {
      caf::anon_send_exit(troupe::services_of(play.node("b")).actors.gateway, caf::exit_reason::kill);
      play.tell_down("c", "b");
    } else {
      play.tell_down("b", "a");
    }
    play.tell_down("a", "b");
    play.run_up_to(20);
    pass.reset();
    play.run();
    BOOST_REQUIRE_MESSAGE(reply.ready(), "seed " << seed << ": the call never ends");
    for (auto who : {"a", "c"})
      BOOST_REQUIRE_MESSAGE(troupe::services_of(play.node(who)).counts.contexts == 0,
                            "seed " << seed << ": a context is left on " << who);
  }
  BOOST_TEST(unknown > 0);
}

// CO-7: "b" calls "c", which is cut off from "a" meanwhile and releases the context.
BOOST_AUTO_TEST_CASE(a_call_that_a_release_overtakes_is_answered) {
  int refused = 0;
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    auto inner = play.hand_on("b", "c");
    troupe::context pass(play.node("a"));
    auto reply = play.peer("b").call("hand_on", {input()});
    play.run_up_to(40);
    play.tell_down("a", "c");
    play.tell_down("c", "a");
    play.run();
    BOOST_REQUIRE(reply.ready());
    for (const auto& each : *inner) {
      BOOST_REQUIRE_MESSAGE(each.ready(), "seed " << seed << ": the inner call never ends");
      refused += was_refused(each) ? 1 : 0;
    }
  }
  BOOST_TEST(refused > 0);
}

// CO-7, GW-13: "b" has to gather the gradients of a pass before it runs a call, loses "a" meanwhile and releases the context.
BOOST_AUTO_TEST_CASE(a_call_that_waits_for_gradients_when_its_context_is_released_is_answered) {
  int refused = 0;
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    troupe::context pass(play.node("a"));
    const auto y = play.call("b", "times_weight", input());
    auto result = pass.backward({y.sum()});
    play.run();
    result.get();
    auto reply = play.peer("b").call("gathered", {});
    play.run_up_to(10);
    play.tell_down("b", "a");
    play.run();
    BOOST_REQUIRE_MESSAGE(reply.ready(), "seed " << seed << ": the call never ends");
    refused += was_refused(reply) ? 1 : 0;
  }
  BOOST_TEST(refused > 0);
  BOOST_TEST(refused < orders);
}

// CO-1: the gradients are asked for during a pass.
BOOST_AUTO_TEST_CASE(gradients_of_a_pass_are_not_handed_out_before_it_is_complete_in_any_order) {
  int early = 0;
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    auto x = input();
    troupe::context pass(play.node("a"));
    auto y = play.through({"b", "c", "b"}, x);
    auto result = pass.backward({(y + x).sum()});
    play.run_up_to(40);
    const auto gradient = play.gradient(pass, x);
    early += gradient.defined() ? 0 : 1;
    BOOST_REQUIRE((!gradient.defined() || same(gradient, torch::full({2}, 9.0))));
    BOOST_REQUIRE_MESSAGE(result.ready(), "seed " << seed << ": the pass hangs");
    result.get();
    BOOST_REQUIRE(same(play.gradient(pass, x), torch::full({2}, 9.0)));
  }
  BOOST_TEST(early > 0);
  BOOST_TEST(early < orders);
}

// PO-1: the news of a failure comes just before or just after the last burst.
BOOST_AUTO_TEST_CASE(a_pass_ends_one_way_for_its_future_its_gradients_and_the_counts_in_every_order) {
  int failed = 0;
  for (int seed = 0; seed < orders; ++seed) {
    cast play(seed);
    auto x = input();
    troupe::context pass(play.node("a"));
    auto y = play.call("b", "times_weight", play.call("b", "times_weight", x));
    auto result = pass.backward({y.sum()});
    if (seed % 2 == 0)  // right after the end of the pass
      while (!result.ready()) BOOST_REQUIRE(play.step());
    else
      play.run_up_to(30);
    play.tell_down("a", "b");
    play.run();
    BOOST_REQUIRE_MESSAGE(result.ready(), "seed " << seed << ": the pass hangs");
    bool succeeded = true;
    try {
      result.get();
    } catch (const troupe::error&) {
      succeeded = false;
      ++failed;
    }
    BOOST_REQUIRE(play.gradient(pass, x).defined() == succeeded);
    const auto& counts = troupe::services_of(play.node("a")).counts;
    BOOST_REQUIRE(counts.passes_completed == (succeeded ? 1u : 0u));
    BOOST_REQUIRE(counts.passes_failed == (succeeded ? 0u : 1u));
  }
  BOOST_TEST(failed > 0);
  BOOST_TEST(failed < orders / 2);
}

// CR-1
BOOST_AUTO_TEST_CASE(a_second_pass_is_refused_while_one_runs_and_runs_after_it) {
  cast play(1);
  auto x = input();
  troupe::context pass(play.node("a"));
  auto y = play.call("b", "times_weight", x);
  troupe::backward_options keep;
  keep.keep_graph = true;
  auto first = pass.backward({y.sum()}, keep);
  auto second = pass.backward({y.sum()}, keep);
  play.run();
  BOOST_REQUIRE((first.ready() && second.ready()));
  first.get();
  BOOST_CHECK_EXCEPTION(second.get(), troupe::error, [](const troupe::error& e) {
    return e.code() == troupe::errc::misuse && std::string(e.what()).find("still running") != std::string::npos;
  });
  auto third = pass.backward({y.sum()});
  play.run();
  third.get();
  BOOST_TEST(same(play.gradient(pass, x), torch::full({2}, 4.0)));
}

BOOST_AUTO_TEST_CASE(a_node_serves_on_however_an_actor_of_a_context_or_a_pass_ends) {  // GW-16
  cast play(1);
  const auto gateway = caf::actor_cast<caf::actor>(troupe::services_of(play.node("b")).actors.gateway);
  const auto start = [&] {
    auto made = play.system.spawn([gateway](caf::event_based_actor* self) -> caf::behavior {
      troupe::support::live_as_long_as(self, gateway);
      return {[](int) {}};
    });
    play.run();
    return made;
  };
  start();  // ends as unreachable, because nobody holds it
  play.run();
  caf::anon_send(start(), caf::exit_msg{{}, caf::make_error(caf::sec::runtime_error)});
  play.run();
  const auto one = torch::ones({2});
  auto answer = play.peer("b").call("times_weight", {one});
  play.run();
  BOOST_TEST_REQUIRE(answer.ready());
  BOOST_TEST(torch::equal(answer.get().tensors.at(0), 2 * one));
}

BOOST_AUTO_TEST_SUITE_END()
