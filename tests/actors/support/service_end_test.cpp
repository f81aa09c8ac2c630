// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>

#include <troupe/actors/support/service_end.hpp>

using troupe::support::service_end;

BOOST_AUTO_TEST_SUITE(end_of_service)

BOOST_AUTO_TEST_CASE(asking_ends_the_wait_of_now_and_of_later) {  // SE-1
  service_end end;
  auto waiting = std::async(std::launch::async, [&] { end.wait(); });
  end.ask();
  waiting.get();
  end.wait();
}

BOOST_AUTO_TEST_CASE(a_blocked_signal_that_is_pending_ends_the_wait) {  // SE-1
  sigset_t stop;
  sigset_t before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, &before);
  raise(SIGTERM);
  service_end end;
  end.wait();
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, &before, &after);
  BOOST_TEST(sigismember(&after, SIGTERM) == 1);  // as it was
  struct sigaction action {};
  sigaction(SIGTERM, nullptr, &action);
  BOOST_TEST((action.sa_handler == SIG_DFL));
}

BOOST_AUTO_TEST_CASE(a_signal_wakes_all_threads_and_a_later_one_ends_the_process) {  // SE-1, SE-2, SE-3
  const auto child = fork();
  if (child == 0) {
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);  // only the threads that wait get the signal
    service_end one;
    service_end other;
    auto waiting = std::async(std::launch::async, [&] { one.wait(); });
    auto also = std::async(std::launch::async, [&] { other.wait(); });
    const auto is_over = [](const auto& which) {
      return which.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready;
    };
    while (!is_over(waiting) || !is_over(also)) kill(getpid(), SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &interrupt, nullptr);
    raise(SIGINT);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  BOOST_TEST(WIFSIGNALED(status));
  BOOST_TEST(WTERMSIG(status) == SIGINT);
}

BOOST_AUTO_TEST_SUITE_END()
