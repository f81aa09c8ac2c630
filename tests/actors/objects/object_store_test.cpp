// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/object_store.hpp>

#include <array>
#include <cstddef>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <actors/temporary_folder.hpp>
#include <troupe/actors/node.hpp>
#include <troupe/actors/objects/local_optimizer.hpp>
#include <troupe/messages/errors.hpp>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr node_id here{7};
constexpr node_id alice{1};
constexpr node_id bob{2};

/// A module that calls `gone` when it is destroyed.
struct noted_module : module {
  std::function<void()> gone;
  explicit noted_module(std::function<void()> at_end = [] {}) : gone(std::move(at_end)) {}
  ~noted_module() override { gone(); }
  call_reply call(const std::string&, call_arguments&) override { return {}; }
  named_tensors parameters() override { return {}; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(object_stores)

BOOST_AUTO_TEST_CASE(an_object_is_found_until_it_is_dropped_and_may_be_finished_with_afterwards) {  // OS-1
  objects::object_store store(here, "stage1");
  const auto id = store.add(alice, std::make_shared<noted_module>());
  BOOST_TEST((id.node == here));
  const auto found = store.find_module(id);
  BOOST_TEST(!store.drop(id, bob));
  BOOST_TEST(store.drop(id, alice));
  BOOST_TEST(!store.drop(id, alice));
  BOOST_TEST(found.use_count() == 1);
  const auto text = text_of<error>([&] { store.find_module(id); });
  BOOST_TEST(contains(text, "node 'stage1' has no object " + to_string(id) + ", expected a module"));
}

BOOST_AUTO_TEST_CASE(an_object_of_the_other_kind_is_refused) {
  objects::object_store store(here, "stage1");
  const auto made = store.add(alice, std::make_shared<noted_module>());
  const auto optimizer =
    store.add(alice, std::make_shared<objects::local_optimizer>(optimizer_settings{}, std::vector<std::shared_ptr<module>>{}));
  BOOST_TEST((made != optimizer));
  BOOST_TEST(contains(text_of<error>([&] { store.find_optimizer(made); }), "not an optimizer"));
  BOOST_TEST(contains(text_of<error>([&] { store.find_module(optimizer); }), "not a module"));
}

BOOST_AUTO_TEST_CASE(another_node_owns_only_so_many_objects) {  // OS-6
  objects::object_store store(here, "stage1");
  const auto held = std::make_shared<noted_module>();
  const auto first = store.add(alice, held);
  for (std::size_t i = 1; i < store.most_of_one; ++i) store.add(alice, held);
  const auto refused = [&](node_id owner) {
    return contains(text_of<error>([&] { store.add(owner, held); }), "keeps 65536 objects of one node, and no more");
  };
  BOOST_TEST(refused(alice));
  store.add(bob, held);
  for (std::size_t i = 0; i < store.most_of_one + 2; ++i) store.add(here, held);
  BOOST_TEST(store.drop(first, alice));
  const auto last = store.add(alice, held);
  BOOST_TEST(refused(alice));
  // Neither does a node get more objects by loans.
  const auto lent = store.add(bob, held);
  const auto ticket = store.lend(lent, bob, alice);
  BOOST_TEST(contains(text_of<error>([&] { store.accept_loan(lent, ticket, alice); }), "keeps 65536 objects of one node"));
  store.settle(alice, {last.number});
  store.accept_loan(lent, ticket, alice);
  store.drop_owned_by(alice);
  for (std::size_t i = 0; i < store.most_of_one; ++i) store.add(alice, held);
  BOOST_TEST(refused(alice));
}

BOOST_AUTO_TEST_CASE(an_object_has_only_so_many_open_loans) {  // OS-6
  objects::object_store store(here, "stage1");
  const auto id = store.add(alice, std::make_shared<noted_module>());
  for (std::size_t i = 1; i < store.most_loans; ++i) store.lend(id, alice, bob);
  const auto ticket = store.lend(id, alice, bob);
  BOOST_TEST(contains(text_of<error>([&] { store.lend(id, alice, bob); }), "has 4096 loans that nobody has taken"));
  store.accept_loan(id, ticket, bob);
  store.lend(id, alice, bob);
}

BOOST_AUTO_TEST_CASE(what_a_node_owned_goes_with_it) {
  objects::object_store store(here, "stage1");
  int gone = 0;
  for (int i = 0; i < 3; ++i) store.add(alice, std::make_shared<noted_module>([&] { ++gone; }));
  const auto kept = store.add(bob, std::make_shared<noted_module>());
  store.drop_owned_by(alice);
  BOOST_TEST(gone == 3);
  BOOST_TEST(store.size() == 1u);
  BOOST_TEST(store.find_module(kept) != nullptr);
  store.drop_owned_by(alice);
  BOOST_TEST(store.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_object_stays_for_its_last_owner) {  // OS-1
  objects::object_store store(here, "stage1");
  const auto id = store.add(alice, std::make_shared<noted_module>());
  store.accept_loan(id, store.lend(id, alice, bob), bob);
  BOOST_TEST(!store.drop(id, alice));
  BOOST_TEST(!store.drop(id, alice));  // alice owns no reference any more
  BOOST_TEST(store.size() == 1u);
  store.drop_owned_by(bob);
  BOOST_TEST(store.size() == 0u);
}

BOOST_AUTO_TEST_CASE(one_owner_with_two_references_drops_one_at_a_time) {  // OS-1
  objects::object_store store(here, "stage1");
  const auto id = store.add(alice, std::make_shared<noted_module>());
  store.accept_loan(id, store.lend(id, alice, alice), alice);
  BOOST_TEST(!store.drop(id, alice));
  BOOST_TEST(store.size() == 1u);
  BOOST_TEST(store.drop(id, alice));
  BOOST_TEST(store.size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_loan_keeps_an_object_until_it_is_taken_or_one_of_its_nodes_goes) {  // OS-4
  objects::object_store store(here, "stage1");
  for (const auto& gone : {alice, bob}) {
    const auto id = store.add(here, std::make_shared<noted_module>());
    const auto ticket = store.lend(id, alice, bob);
    BOOST_TEST(!store.drop(id, here));
    BOOST_TEST(store.size() == 1u);
    store.drop_owned_by(gone);
    BOOST_TEST(store.size() == 0u);
    BOOST_TEST(contains(text_of<error>([&] { store.accept_loan(id, ticket, bob); }), "has no object"));
  }
  const auto id = store.add(alice, std::make_shared<noted_module>());
  const auto ticket = store.lend(id, alice, bob);
  BOOST_TEST(contains(text_of<error>([&] { store.accept_loan(id, ticket, alice); }), "lent to another node"));
  store.accept_loan(id, ticket, bob);
  BOOST_TEST(contains(text_of<error>([&] { store.accept_loan(id, ticket, bob); }), "accepted before"));
}

BOOST_AUTO_TEST_CASE(a_store_serves_the_owners_of_its_objects_and_both_nodes_of_an_open_loan) {
  constexpr node_id lender{3};
  objects::object_store store(here, "stage1");
  BOOST_TEST(!store.serves(alice));
  const auto id = store.add(alice, std::make_shared<noted_module>());
  BOOST_TEST(store.serves(alice));
  BOOST_TEST(!store.serves(bob));
  const auto ticket = store.lend(id, lender, bob);
  BOOST_TEST(store.serves(bob));
  BOOST_TEST(store.serves(lender));
  store.accept_loan(id, ticket, bob);
  BOOST_TEST(store.serves(bob));
  BOOST_TEST(!store.serves(lender));
  store.drop(id, alice);
  BOOST_TEST(!store.serves(alice));
}

BOOST_AUTO_TEST_CASE(makers_and_destructors_may_use_the_store) {  // OS-3
  objects::object_store store(here, "stage1");
  store.add_module_type("outer", [&](const attributes&) {
    const auto inner = store.add(alice, std::make_shared<noted_module>());
    return std::make_shared<noted_module>([&store, inner] { store.drop(inner, alice); });
  });
  const auto first = store.add(alice, store.make_module("outer", {}));
  const auto second = store.add(bob, store.make_module("outer", {}));
  BOOST_TEST(store.size() == 4u);
  store.drop(first, alice);
  BOOST_TEST(store.size() == 2u);
  store.drop_owned_by(bob);
  BOOST_TEST(store.size() == 0u);
  BOOST_TEST((first != second));
}

BOOST_AUTO_TEST_CASE(an_unknown_type_is_refused_with_the_types_there_are) {
  objects::object_store store(here, "stage1");
  BOOST_TEST(
    contains(text_of<error>([&] { store.make_module("block", {}); }), "node 'stage1' has no module type 'block'; it has none"));
  store.add_module_type("head", [](const attributes&) { return std::make_shared<noted_module>(); });
  store.add_module_type("nothing", [](const attributes&) { return nullptr; });
  try {
    store.make_module("block", {});
    BOOST_ERROR("an unknown type was made");
  } catch (const error& refused) {
    BOOST_TEST((refused.code() == errc::unknown_function));
    BOOST_TEST(contains(refused.what(), "it has 'head', 'nothing'"));
  }
  BOOST_TEST(contains(text_of<error>([&] { store.make_module("nothing", {}); }), "returned null"));
  BOOST_TEST(contains(text_of<error>([&] { store.add_module_type("head", {}); }), "already has a module type 'head'"));
}

BOOST_AUTO_TEST_CASE(ids_stay_unique_when_many_threads_add_and_drop) {  // OS-2
  objects::object_store store(here, "stage1");
  std::vector<std::thread> threads;
  std::vector<std::vector<object_id>> ids(4);
  for (auto& mine : ids)
    threads.emplace_back([&store, &mine] {
      for (int i = 0; i < 500; ++i) {
        mine.push_back(store.add(alice, std::make_shared<noted_module>()));
        if (i % 2 == 1) store.drop(mine[mine.size() - 2], alice);
      }
    });
  for (auto& thread : threads) thread.join();
  std::set<object_id> all;
  for (const auto& mine : ids) all.insert(mine.begin(), mine.end());
  BOOST_TEST(all.size() == 2000u);
  BOOST_TEST(store.size() == 1000u);
}

BOOST_AUTO_TEST_SUITE_END()
