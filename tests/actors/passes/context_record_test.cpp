// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <troupe/actors/passes/context_record.hpp>

namespace {

using troupe::contracts::graph_task_actor;
using troupe::passes::context_record;

constexpr troupe::node_id here{1};
constexpr troupe::node_id other{2};

struct records {
  caf::actor_system_config config;
  caf::actor_system system{config};
  troupe::support::activity counts;
  context_record mine{{here, 1}, here, counts};
  context_record of_other{{other, 1}, here, counts};

  /// An actor that ends at once. The tests only store its handle in the record.
  graph_task_actor task() {
    auto ended = system.spawn([](graph_task_actor::pointer self) -> graph_task_actor::behavior_type {
      self->quit();
      using promise_of_walk = caf::result<troupe::discovered>;
      using promise_of_abort = caf::result<troupe::pass_aborted>;
      using promise_of_table = caf::result<troupe::contracts::table_ptr>;
      return {[](troupe::support::start_atom) {},
              [](troupe::propagate_gradients&) {},
              [](troupe::participant_quiet&) {},
              [](troupe::participant_failed&) {},
              [](troupe::discover&) -> promise_of_walk { return caf::sec::runtime_error; },
              [](troupe::prune&) {},
              [](troupe::abort_pass&) -> promise_of_abort { return caf::sec::runtime_error; },
              [](troupe::contracts::burst_ptr&) {},
              [](troupe::contracts::peer_down&) {},
              [](troupe::support::gradients_atom) -> promise_of_table { return caf::sec::runtime_error; },
              [](troupe::support::deadline_atom) {},
              [](troupe::support::close_atom) {}};
    });
    return ended;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(context_record_states, records)

// CR-4
BOOST_AUTO_TEST_CASE(a_part_in_the_context_is_what_others_say_of_a_node) {
  constexpr troupe::node_id called{3};
  constexpr troupe::node_id named{4};
  constexpr troupe::node_id caller{5};
  constexpr troupe::node_id itself{6};
  mine.add({}, called);
  mine.members.joined({named, here});
  mine.members.called_by(caller);
  mine.members.announced(itself);
  BOOST_TEST((mine.members.takes_part(called) && mine.members.takes_part(named) && mine.members.takes_part(caller)));
  BOOST_TEST(!mine.members.takes_part(itself));
  BOOST_TEST(!mine.members.takes_part(other));
  BOOST_TEST((mine.members.peers() == std::vector{called, named, itself}));
  // A node that comes back announces itself. It had its part before.
  mine.members.left(named);
  BOOST_TEST(!mine.members.has_peer(named));
  mine.members.announced(named);
  BOOST_TEST((mine.members.has_peer(named) && mine.members.takes_part(named)));
}

BOOST_AUTO_TEST_CASE(the_first_caller_is_the_parent_in_the_tree_of_calls) {
  constexpr troupe::node_id first{3};
  constexpr troupe::node_id second{4};
  constexpr troupe::node_id child{5};
  mine.members.called_by(first);  // this node has opened the context: it is the root
  mine.members.adopt(child);
  BOOST_TEST(!mine.members.joined_by(first));
  BOOST_TEST(mine.begin(true)->position == nullptr);
  for (const bool by_the_opener : {false, true}) {
    troupe::passes::context_record theirs({other, 1}, here, counts);
    const auto parent = by_the_opener ? other : first;
    theirs.members.called_by(parent);
    theirs.members.called_by(second);
    theirs.members.called_by(by_the_opener ? first : other);
    BOOST_TEST(!theirs.members.joined_by(second));
    BOOST_TEST(theirs.members.joined_by(first) == !by_the_opener);
    const auto before = theirs.follow({1})->position;
    theirs.members.adopt(child);
    BOOST_TEST(before->children.empty());  // the running pass keeps what it has
    const auto position = theirs.follow({2})->position;
    BOOST_TEST((position->parent == (by_the_opener ? troupe::node_id{} : first)));
    BOOST_TEST(position->children.contains(child));
    BOOST_TEST(position->children.size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(a_child_of_one_context_is_none_of_another_context) {
  constexpr troupe::node_id child{5};
  context_record second({other, 2}, here, counts);
  of_other.members.called_by(other);
  second.members.called_by(other);
  of_other.members.adopt(child);
  BOOST_TEST(of_other.follow({1})->position->children.contains(child));
  BOOST_TEST(second.follow({1})->position->children.empty());
}

BOOST_AUTO_TEST_CASE(a_node_that_has_left_is_no_peer_whatever_made_it_one) {
  constexpr troupe::node_id called{3};
  constexpr troupe::node_id itself{6};
  mine.add({}, called);
  mine.members.announced(itself);
  mine.members.announced(here);
  mine.members.joined({here});
  BOOST_TEST(!mine.members.has_peer(here));
  BOOST_TEST((mine.begin(true)->peers == std::set{called, itself}));
  mine.end({1}, true);
  mine.members.left(called);
  mine.members.left(itself);
  mine.members.left(other);
  BOOST_TEST((mine.members.peers().empty() && mine.begin(true)->peers.empty()));
  BOOST_TEST((mine.members.takes_part(called) && !mine.members.takes_part(itself) && !mine.members.takes_part(other)));
}

// CR-1
BOOST_AUTO_TEST_CASE(a_pass_runs_from_its_begin_to_its_end_and_no_other_one_begins_meanwhile) {
  BOOST_TEST((mine.begin(true)->number == troupe::pass_number{1}));
  BOOST_TEST(mine.passes().is_running());
  BOOST_TEST(!mine.begin(false).has_value());
  mine.end({1}, true);
  BOOST_TEST(!mine.passes().is_running());
  BOOST_TEST((mine.passes().completed == troupe::pass_number{1}));
  BOOST_TEST((mine.begin(true)->number == troupe::pass_number{2}));
}

// CR-3
BOOST_AUTO_TEST_CASE(a_completed_pass_keeps_its_task_until_it_is_gathered_and_a_later_pass_waits_for_that) {
  const auto first = task();
  mine.begin(true);
  BOOST_TEST(mine.set_task({1}, first));
  BOOST_TEST(!mine.next_to_gather());  // the pass still runs
  mine.end({1}, true);
  BOOST_TEST((mine.task_of({1}) == first));
  BOOST_TEST(!mine.begin(true).has_value());
  BOOST_TEST((mine.next_to_gather() == first));
  BOOST_TEST(!mine.task_of({1}));
  BOOST_TEST(!mine.begin(true).has_value());  // the gradients of the first pass are not added yet
  BOOST_TEST(!mine.next_to_gather());
  BOOST_TEST(mine.begin(true).has_value());
}

// CR-3
BOOST_AUTO_TEST_CASE(passes_are_gathered_from_the_oldest_one_on) {
  const auto first = task();
  const auto second = task();
  of_other.follow({1});
  of_other.set_task({1}, first);
  of_other.follow({2});
  of_other.set_task({2}, second);
  BOOST_TEST(!of_other.next_to_gather());
  BOOST_TEST(of_other.learn({2}, {}).empty());
  BOOST_TEST((of_other.next_to_gather() == first));
  BOOST_TEST((of_other.next_to_gather() == second));
  BOOST_TEST(!of_other.next_to_gather());
}

// CR-3
BOOST_AUTO_TEST_CASE(a_failed_pass_leaves_no_task_whoever_says_that_it_failed) {
  const auto lost = task();
  mine.begin(true);
  mine.set_task({1}, task());
  mine.end({1}, false);
  BOOST_TEST(mine.tasks().empty());
  BOOST_TEST(mine.begin(true).has_value());

  of_other.follow({1});
  of_other.set_task({1}, lost);
  const auto closed = of_other.learn({}, {{1}});
  BOOST_REQUIRE(closed.size() == 1u);
  BOOST_TEST((closed.front() == lost));
  BOOST_TEST(of_other.tasks().empty());

  of_other.follow({2});
  of_other.set_task({2}, lost);
  BOOST_TEST((of_other.skip({2}) == lost));
  BOOST_TEST(of_other.tasks().empty());
}

// CR-1, CR-5: this node started the pass. Another node learns of the abort before this node has ended the pass.
BOOST_AUTO_TEST_CASE(news_from_other_nodes_do_not_end_a_pass_that_this_node_leads) {
  const auto led = task();
  mine.begin(true);
  mine.set_task({1}, led);
  BOOST_TEST(mine.learn({7}, {{1}, {2}}).empty());
  BOOST_TEST((mine.task_of({1}) == led));
  BOOST_TEST(!mine.next_to_gather());
  mine.end({1}, false);
  BOOST_TEST(!mine.passes().is_running());
  BOOST_TEST((mine.begin(true)->number == troupe::pass_number{2}));
}

// GW-18
BOOST_AUTO_TEST_CASE(a_record_says_what_is_possible_and_whether_it_lacks_news) {
  constexpr auto leap = troupe::passes::known_passes::longest_leap;
  BOOST_TEST(of_other.passes().is_possible({leap}));
  BOOST_TEST(!of_other.passes().is_possible({leap + 1}));
  BOOST_TEST(!of_other.passes().is_possible({~std::uint64_t{0}}));
  BOOST_TEST(!of_other.lacks({}, {}));
  BOOST_TEST(!of_other.lacks({1}, {{1}}));  // this node had no part in a pass: no gradients wait
  of_other.learn({2}, {{1}});
  BOOST_TEST(!of_other.lacks({2}, {{1}}));
  BOOST_TEST(of_other.passes().is_possible({leap + 2}));
  of_other.follow({3});
  BOOST_TEST(!of_other.lacks({2}, {{1}}));
  BOOST_TEST((of_other.lacks({3}, {}) && of_other.lacks({}, {{2}})));
  of_other.set_task({3}, task());
  BOOST_TEST(of_other.lacks({2}, {{1}}));
  BOOST_TEST((of_other.passes().is_possible({1}) && of_other.passes().is_possible({leap + 3}) &&
              !of_other.passes().is_possible({leap + 4})));
}

// CO-1: a call brings the news of the failure before the first gradients of the pass arrive.
BOOST_AUTO_TEST_CASE(a_pass_that_is_known_to_have_failed_is_never_followed) {
  BOOST_TEST(of_other.learn({}, {{1}}).empty());
  BOOST_TEST(!of_other.follow({1}).has_value());
  BOOST_TEST(of_other.follow({2}).has_value());
}

// CR-3
BOOST_AUTO_TEST_CASE(a_pass_is_followed_once_and_never_after_a_newer_or_a_skipped_one) {
  BOOST_TEST(of_other.follow({2}).has_value());
  BOOST_TEST(!of_other.follow({2}).has_value());
  BOOST_TEST(!of_other.follow({1}).has_value());
  BOOST_TEST(!of_other.skip({3}));
  BOOST_TEST(!of_other.follow({3}).has_value());
  BOOST_TEST(of_other.follow({4}).has_value());
}

// CR-5
BOOST_AUTO_TEST_CASE(the_opener_skips_no_pass_that_it_has_not_begun) {
  constexpr troupe::pass_number latest{~std::uint64_t{0}};
  BOOST_TEST(!mine.skip(latest));
  BOOST_TEST((mine.begin(true)->number == troupe::pass_number{1}));
  mine.set_task({1}, task());
  BOOST_TEST((mine.skip({1}) != nullptr));
}

// CR-6
BOOST_AUTO_TEST_CASE(a_node_takes_part_in_so_many_passes_of_another_one) {
  const auto tasks = std::make_shared<context_record::task_count>(context_record::most_tasks - 2);
  context_record second({other, 2}, here, counts);
  of_other.count_in(tasks);
  second.count_in(tasks);
  of_other.follow({1});
  of_other.set_task({1}, task());
  BOOST_TEST(second.follow({1}).has_value());
  second.set_task({1}, task());
  for (auto* each : {&of_other, &second}) {
    BOOST_TEST((each->lacks_capacity_for({2}) && !each->follow({2}).has_value()));
    BOOST_TEST(!each->lacks_capacity_for({1}));  // this pass has its part
  }
  of_other.learn({1}, {});
  BOOST_TEST((of_other.next_to_gather() != nullptr));
  BOOST_TEST(!second.lacks_capacity_for({2}));
  BOOST_TEST(second.follow({2}).has_value());
  second.set_task({2}, task());
  BOOST_TEST(of_other.lacks_capacity_for({2}));
  second.skip({2});
  BOOST_TEST(!of_other.lacks_capacity_for({2}));
  second.release();
  BOOST_TEST(*tasks == context_record::most_tasks - 2);
}

// CR-7
BOOST_AUTO_TEST_CASE(a_record_remembers_so_many_failed_passes_and_says_when_there_are_more) {
  std::vector<troupe::pass_number> failed;
  for (std::uint64_t number = 1; number <= context_record::most_failed; ++number) failed.push_back({number});
  of_other.learn({}, failed);
  of_other.learn({}, failed);
  failed.push_back({context_record::most_failed + 1});
  BOOST_CHECK_THROW(of_other.learn({9000}, failed), troupe::error);
  BOOST_TEST((of_other.passes().completed == troupe::pass_number{}));
  BOOST_TEST(!of_other.skip({9001}));
  BOOST_TEST(!of_other.follow({9001}).has_value());
  troupe::call_request request;
  of_other.passes().brief(request);
  BOOST_TEST(request.failed.size() == context_record::most_failed);
}

// CO-1
BOOST_AUTO_TEST_CASE(what_callers_know_reaches_the_calls_that_are_made_from_here) {
  of_other.learn({3}, {{2}});
  of_other.learn({1}, {});  // older news
  troupe::call_request request;
  of_other.passes().brief(request);
  BOOST_TEST((request.completed == troupe::pass_number{3}));
  BOOST_REQUIRE(request.failed.size() == 1u);
  BOOST_TEST((request.failed.front() == troupe::pass_number{2}));
  BOOST_TEST(!of_other.passes().has_gradients);
  of_other.follow({4});
  BOOST_TEST(of_other.passes().has_gradients);
}

// CR-2, CR-3
BOOST_AUTO_TEST_CASE(a_released_record_hands_everything_out_and_takes_nothing_more) {
  const auto held = task();
  mine.begin(true);
  mine.set_task({1}, held);
  const auto remains = mine.release();
  BOOST_REQUIRE(remains.tasks.size() == 1u);
  BOOST_TEST((remains.tasks.front() == held));
  BOOST_TEST(!mine.add({}, other));
  BOOST_TEST(!mine.set_task({1}, held));
  BOOST_TEST(mine.tasks().empty());
  BOOST_TEST(!mine.begin(false).has_value());
  BOOST_TEST(!mine.follow({2}).has_value());
  BOOST_TEST(mine.release().tasks.empty());
  BOOST_TEST(counts.contexts == 1u);  // the other record's
  BOOST_TEST(counts.passes_running == 0u);
  BOOST_TEST(counts.passes_failed == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
