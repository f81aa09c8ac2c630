// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/sent_request.hpp"

#include <future>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace {

using torchtroupe::sending_thread;
using torchtroupe::sent_request;
constexpr std::chrono::seconds patience{20};

/// Runs ends elsewhere at once, and keeps what is to be dropped later.
struct others {
  others() { sent_request::between_requests() = patience; }

  std::vector<std::thread::id> ran;
  std::vector<std::shared_ptr<void>> kept;
  std::atomic<std::size_t> elsewhere{0};
  const sending_thread::other_way way{[this](auto end) {
                                        ++elsewhere;
                                        end();
                                      },
                                      [this](auto what) { kept.push_back(std::move(what)); }};

  sending_thread::work end() {
    return [this] { ran.push_back(std::this_thread::get_id()); };
  }
};

/// A thread that waits for something, and hears of ends meanwhile.
class waiting {
 public:
  /// `begin`: what the thread does before it waits, such as sending requests.
  explicit waiting(std::function<void()> begin)
      : thread_([this, begin = std::move(begin)] {
          begin();
          bool is_first = true;
          const auto done = [&] {
            if (!is_first && !waits_told_) {  // the second question comes once the thread takes ends
              waits_told_ = true;
              waits_.set_value();
            }
            is_first = false;
            return is_done_.load();
          };
          result_ = sending_thread::here()->wait(done, mutex_, told_, nullptr, patience);
          left_.set_value();
        }) {}
  ~waiting() { thread_.join(); }
  waiting(const waiting&) = delete;
  waiting& operator=(const waiting&) = delete;

  void until_it_waits() { BOOST_TEST_REQUIRE((waits_.get_future().wait_for(patience) == std::future_status::ready)); }
  std::thread::id id() const { return thread_.get_id(); }
  bool is_over() {
    is_done_ = true;
    {
      const std::lock_guard lock(mutex_);
      told_.notify_all();
    }
    BOOST_TEST_REQUIRE((left_.get_future().wait_for(patience) == std::future_status::ready));
    return result_;
  }

 private:
  std::promise<void> waits_, left_;
  bool waits_told_ = false;
  bool result_ = false;
  std::atomic<bool> is_done_{false};
  std::mutex mutex_;
  std::condition_variable told_;
  std::thread thread_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(sent_request_test)

BOOST_AUTO_TEST_CASE(a_thread_that_waits_runs_the_ends_of_its_requests) {  // WA-1, WA-2
  others elsewhere;
  std::shared_ptr<sent_request> first, second;
  std::thread::id own;
  {
    waiting thread([&] {
      first = sent_request::of_this_thread();
      second = sent_request::of_this_thread();
    });
    own = thread.id();
    thread.until_it_waits();
    first->run(elsewhere.end(), true, elsewhere.way);
    second->run(elsewhere.end(), true, elsewhere.way);
    BOOST_TEST(thread.is_over());
  }
  BOOST_TEST((elsewhere.ran == std::vector(2, own)));
  BOOST_TEST(elsewhere.elsewhere == 0U);
}

BOOST_AUTO_TEST_CASE(an_end_that_comes_while_the_thread_sends_waits_for_the_thread) {  // WA-1, WA-2
  others elsewhere;
  std::thread::id own;
  bool was_kept = false;
  {
    waiting thread([&] {
      own = std::this_thread::get_id();
      const auto first = sent_request::of_this_thread();
      const auto second = sent_request::of_this_thread();
      first->run(elsewhere.end(), true, elsewhere.way);
      was_kept = elsewhere.ran.empty();
    });
    thread.until_it_waits();
    BOOST_TEST(was_kept);
    BOOST_TEST(elsewhere.kept.size() == 1U);
    elsewhere.kept.clear();  // too late: nothing is left
    BOOST_TEST(thread.is_over());
  }
  BOOST_TEST((elsewhere.ran == std::vector(1, own)));
  BOOST_TEST(elsewhere.elsewhere == 0U);
}

BOOST_AUTO_TEST_CASE(an_end_for_which_the_thread_does_not_come_runs_elsewhere) {  // WA-1
  others elsewhere;
  const auto first = sent_request::of_this_thread();
  const auto second = sent_request::of_this_thread();
  first->run(elsewhere.end(), true, elsewhere.way);
  BOOST_TEST(elsewhere.ran.empty());
  elsewhere.kept.clear();
  BOOST_TEST(elsewhere.ran.size() == 1U);
  BOOST_TEST(elsewhere.elsewhere == 1U);
  second->run(elsewhere.end(), true, elsewhere.way);  // the last request: the thread sends no other
  BOOST_TEST(elsewhere.ran.size() == 2U);
  BOOST_TEST(elsewhere.kept.empty());
  BOOST_TEST(sent_request::wait(patience));
  BOOST_TEST(elsewhere.ran.size() == 2U);
}

BOOST_AUTO_TEST_CASE(an_end_may_wait_itself) {  // WA-1, WA-2
  others elsewhere;
  std::shared_ptr<sent_request> first, second;
  {
    waiting thread([&] {
      first = sent_request::of_this_thread();
      second = sent_request::of_this_thread();
    });
    thread.until_it_waits();
    std::promise<void> begins;
    first->run(
      [&] {
        begins.set_value();
        std::mutex mutex;
        std::condition_variable told;
        sending_thread::here()->wait([&] { return !elsewhere.ran.empty(); }, mutex, told, nullptr, patience);
      },
      true, elsewhere.way);
    BOOST_TEST_REQUIRE((begins.get_future().wait_for(patience) == std::future_status::ready));
    second->run(elsewhere.end(), true, elsewhere.way);
    BOOST_TEST(thread.is_over());
  }
  BOOST_TEST(elsewhere.ran.size() == 1U);
  BOOST_TEST(elsewhere.elsewhere == 0U);
}

BOOST_AUTO_TEST_CASE(a_wait_ends_with_its_patience) {
  const auto asked = sent_request::of_this_thread();
  BOOST_TEST(!sent_request::wait(std::chrono::milliseconds(1)));
  asked->not_sent();
  BOOST_TEST(sent_request::wait(patience));
}

BOOST_AUTO_TEST_CASE(an_end_that_is_not_plain_runs_in_the_thread_only_if_the_thread_waits_for_it) {  // WA-3
  others elsewhere;
  std::shared_ptr<sent_request> first, second;
  {
    waiting thread([&] {
      first = sent_request::of_this_thread();
      second = sent_request::of_this_thread();
      first->run(elsewhere.end(), false, elsewhere.way);
    });
    thread.until_it_waits();
    BOOST_TEST(elsewhere.elsewhere == 1U);
    second->run(elsewhere.end(), false, elsewhere.way);
    BOOST_TEST(elsewhere.elsewhere == 2U);
    BOOST_TEST(thread.is_over());
  }
  std::promise<void> sent;
  bool has_ended = false;
  std::atomic<bool> ran{false};
  std::thread sender([&] {
    first = sent_request::of_this_thread();
    sent.set_value();
    has_ended = sent_request::wait(patience);
  });
  sent.get_future().wait();
  // The end runs in the sender once that waits. Before, the other way runs the end, and the sender need not wait.
  first->run([&] { ran = true; }, false, elsewhere.way);
  sender.join();
  BOOST_TEST((has_ended && ran));
}

BOOST_AUTO_TEST_CASE(an_end_that_the_thread_runs_may_wait_in_another_way_for_an_end_of_the_thread) {  // WA-1
  others elsewhere;
  std::shared_ptr<sent_request> own, other;
  std::promise<void> sent, begins, let_go;
  bool was_let_go = false;
  std::thread sender([&] {
    other = sent_request::of_this_thread();
    own = sent_request::of_this_thread();
    sent.set_value();
    sent_request::wait(patience);
  });
  sent.get_future().wait();
  const auto goes_on = let_go.get_future().share();
  std::thread brings([&] {
    own->run(
      [&] {
        begins.set_value();
        was_let_go = goes_on.wait_for(patience) == std::future_status::ready;
      },
      false, elsewhere.way);
  });
  begins.get_future().wait();
  other->run([&] { let_go.set_value(); }, true, elsewhere.way);
  elsewhere.kept.clear();  // the short time is over
  sender.join();
  brings.join();
  BOOST_TEST(was_let_go);
}

// The last case: the process keeps that there is a callback.
BOOST_AUTO_TEST_CASE(with_callbacks_the_thread_runs_only_the_end_for_which_it_waits) {  // WA-3
  others elsewhere;
  std::shared_ptr<sent_request> first, second;
  bool was_kept = false;
  {
    waiting thread([&] {
      first = sent_request::of_this_thread();
      second = sent_request::of_this_thread();
      first->run(elsewhere.end(), true, elsewhere.way);
      was_kept = elsewhere.ran.empty();
      sending_thread::note_callback();
    });
    thread.until_it_waits();
    BOOST_TEST(was_kept);
    BOOST_TEST(elsewhere.elsewhere == 1U);  // what was kept
    second->run(elsewhere.end(), true, elsewhere.way);
    BOOST_TEST(elsewhere.elsewhere == 2U);
    BOOST_TEST(thread.is_over());
  }
  BOOST_TEST(elsewhere.ran.size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
