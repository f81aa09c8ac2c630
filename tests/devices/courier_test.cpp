// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/devices/courier.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <troupe/messages/errors.hpp>

#include "support/no_more_threads.hpp"
#include "support/simulated_fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct courier_fixture : simulated::fixture {
  devices::staging stage;
  std::optional<devices::courier> messenger{std::in_place};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(courier, courier_fixture)

BOOST_AUTO_TEST_CASE(what_needs_no_waiting_is_sent_by_the_caller) {  // CE-1
  std::thread::id sender;
  messenger->post(stage.to_host({at::ones({2})}), [&](std::exception_ptr) { sender = std::this_thread::get_id(); });
  BOOST_CHECK(sender == std::this_thread::get_id());
}

BOOST_AUTO_TEST_CASE(parcels_are_sent_in_order_when_their_elements_are_there) {  // CE-2
  simulated::gate late(default_stream);
  auto staged = stage.to_host({at::ones({2}, at::device(first))});
  const auto tensor = staged.tensors[0];
  std::vector<int> order;
  std::promise<bool> right;
  messenger->post(std::move(staged), [&](std::exception_ptr failure) {
    order.push_back(1);
    right.set_value(!failure && (tensor == 1).all().item<bool>());
  });
  messenger->post({}, [&](std::exception_ptr) { order.push_back(2); });  // ready, but behind another parcel
  auto answer = right.get_future();
  simulated::settle();
  BOOST_TEST(order.empty());
  late.open();
  BOOST_TEST(answer.get());
  messenger->finish(std::chrono::steady_clock::now() + std::chrono::hours(1));
  BOOST_TEST(order == (std::vector<int>{1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(at_the_end_parcels_are_sent_on_one_thread_at_a_time_too) {  // CE-2
  std::promise<void> inside;
  std::promise<void> may_end;
  std::atomic<bool> first_is_sent{false};
  bool in_order = false;
  messenger->post(stage.to_host({at::ones({2}, at::device(first))}), [&](std::exception_ptr) {
    inside.set_value();
    may_end.get_future().wait_for(std::chrono::milliseconds(200));  // ends early only if the second parcel is sent too early
    first_is_sent = true;
  });
  inside.get_future().wait();
  messenger->post(stage.to_host({at::ones({2}, at::device(first))}), [&](std::exception_ptr) {
    in_order = first_is_sent;
    may_end.set_value();
  });
  messenger->finish(std::chrono::steady_clock::now());
  BOOST_TEST(in_order);
}

BOOST_AUTO_TEST_CASE(where_the_device_failed_the_sender_is_told_why) {  // CE-3
  const simulated::broken_device broken;
  std::string why;
  messenger->post(stage.to_host({at::ones({2}, at::device(first))}), [&](std::exception_ptr failure) {
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(failure), c10::Error, [&](const c10::Error& reason) {
      why = reason.what_without_backtrace();
      return true;
    });
  });
  messenger->finish(std::chrono::steady_clock::now() + std::chrono::hours(1));
  BOOST_TEST(why == "the simulated device is broken");
  BOOST_TEST(messenger->idle());
}

BOOST_AUTO_TEST_CASE(where_there_is_no_thread_the_sender_is_told_why) {  // CE-3
  auto staged = stage.to_host({at::ones({2}, at::device(first))});
  std::string why;
  {
    const no_more_threads none;
    messenger->post(std::move(staged), [&](std::exception_ptr failure) {
      BOOST_CHECK_THROW(std::rethrow_exception(failure), std::system_error);
      why = "told";
    });
  }
  BOOST_TEST(why == "told");
  BOOST_TEST(messenger->idle());
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_too_late_is_waited_for_at_the_end) {  // CE-4
  int sent = 0;
  simulated::gate late(default_stream);
  for (int i = 0; i < 20; ++i) {
    messenger->post(stage.to_host({at::ones({2}, at::device(first))}),
                    [&](std::exception_ptr failure) { sent += failure ? 0 : 1; });
  }
  std::thread opens([&] {
    simulated::settle();
    late.open();
  });
  messenger->finish(std::chrono::steady_clock::now() + std::chrono::hours(1));
  opens.join();
  BOOST_TEST(sent == 20);
}

BOOST_AUTO_TEST_CASE(it_ends_in_time_though_the_device_does_not_answer) {  // CE-4
  int told = 0;
  const auto too_late = [&](std::exception_ptr failure) {
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(failure), error,
                          [&](const error& reason) { return reason.code() == errc::stopping && ++told > 0; });
  };
  simulated::gate late(default_stream);
  for (int i = 0; i < 3; ++i) messenger->post(stage.to_host({at::ones({2}, at::device(first))}), too_late);
  simulated::settle();
  messenger->finish(std::chrono::steady_clock::now());
  BOOST_TEST(told == 3);
  messenger->post(stage.to_host({at::ones({2}, at::device(first))}), too_late);
  BOOST_TEST(told == 4);
  messenger.reset();
  late.open();
  simulated::synchronize();
  BOOST_TEST(told == 4);
}

BOOST_AUTO_TEST_CASE(its_destructor_ends_in_time_though_the_device_does_not_answer) {  // CE-4
  bool told = false;
  simulated::gate late(default_stream);
  messenger->post(stage.to_host({at::ones({2}, at::device(first))}),
                  [&](std::exception_ptr failure) { told = failure != nullptr; });
  messenger.reset();
  BOOST_TEST(told);
  late.open();
  simulated::synchronize();
}

BOOST_AUTO_TEST_CASE(the_end_of_all_transfers_is_the_end_of_those_of_each_device) {  // CE-4
  int told = 0;
  devices::transfers all;
  simulated::gate late(default_stream);
  simulated::gate late_too(c10::Stream(c10::Stream::DEFAULT, second));
  for (const auto& device : {first, second}) {
    all.post(all.stage.to_host({at::ones({2}, at::device(device))}),
             [&](std::exception_ptr failure) { told += failure ? 1 : 0; });
  }
  all.finish(std::chrono::steady_clock::now());
  BOOST_TEST(told == 2);
}

BOOST_AUTO_TEST_CASE(what_is_posted_later_does_not_hold_up_the_end_of_its_buffers) {  // CE-4
  auto all = std::make_unique<devices::transfers>();
  simulated::gate late(default_stream);
  all->finish(std::chrono::steady_clock::now());
  bool told = false;
  all->post(all->stage.to_host({at::ones({2}, at::device(first))}),
            [&](std::exception_ptr failure) { told = failure != nullptr; });
  BOOST_TEST(told);
  auto gone = std::async(std::launch::async, [&] { all.reset(); });
  const bool in_time = gone.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  BOOST_TEST(in_time);
  late.open();
}

BOOST_AUTO_TEST_CASE(what_is_late_on_one_device_holds_up_no_other_device) {  // TF-1
  devices::transfers all;
  std::promise<void> sent;
  auto second_is_there = sent.get_future();
  bool first_is_there = false;
  simulated::gate late(default_stream);
  all.post(all.stage.to_host({at::ones({2}, at::device(first))}), [&](std::exception_ptr) { first_is_there = true; });
  all.post(all.stage.to_host({at::ones({2}, at::device(second))}), [&](std::exception_ptr) { sent.set_value(); });
  second_is_there.wait();
  late.open();
  all.finish(std::chrono::steady_clock::now() + std::chrono::hours(1));
  BOOST_TEST(first_is_there);
}

BOOST_AUTO_TEST_SUITE_END()
