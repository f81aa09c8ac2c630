// SPDX-License-Identifier: BSD-3-Clause
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

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

BOOST_AUTO_TEST_CASE(a_hangup_runs_the_functions_of_all_threads_that_wait_and_ends_nothing) {  // SE-4
  const auto child = fork();
  if (child == 0) {
    signal(SIGHUP, SIG_IGN);  // it would end the process before a thread waits
    std::array<service_end, 2> ends;
    std::array<std::atomic<bool>, 2> heard{};
    std::array<std::future<void>, 2> waiting;
    for (std::size_t i = 0; i < 2; ++i)
      waiting[i] = std::async(std::launch::async, [&, i] { ends[i].wait([&heard, i] { heard[i] = true; }); });
    while (!heard[0] || !heard[1]) kill(getpid(), SIGHUP);
    for (const auto& each : waiting)
      if (each.wait_for(std::chrono::milliseconds(0)) == std::future_status::ready) _exit(1);
    for (auto& each : ends) each.ask();
    for (auto& each : waiting) each.get();
    struct sigaction action {};
    sigaction(SIGHUP, nullptr, &action);
    _exit(action.sa_handler == SIG_IGN ? 0 : 2);  // as it was
  }
  int status = 0;
  waitpid(child, &status, 0);
  BOOST_TEST(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 0);
}

BOOST_AUTO_TEST_CASE(a_program_keeps_its_own_handler_of_a_hangup) {  // SE-4
  static std::atomic<bool> came;
  came = false;
  struct sigaction own {};
  struct sigaction before {};
  own.sa_handler = [](int) { came = true; };
  sigaction(SIGHUP, &own, &before);
  std::atomic<bool> heard{false};
  service_end end;
  auto waiting = std::async(std::launch::async, [&] { end.wait([&] { heard = true; }); });
  struct sigaction stop {};
  do sigaction(SIGTERM, nullptr, &stop);
  while (stop.sa_handler == SIG_DFL);  // the thread waits
  kill(getpid(), SIGHUP);
  while (!came) std::this_thread::yield();
  end.ask();
  waiting.get();
  sigaction(SIGHUP, &before, nullptr);
  BOOST_TEST(!heard);
}

BOOST_AUTO_TEST_CASE(a_program_that_blocks_a_hangup_takes_it_itself) {  // SE-4
  const auto child = fork();
  if (child == 0) {
    alarm(20);
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &hangup, nullptr);
    service_end end;
    auto waiting = std::async(std::launch::async, [&] { end.wait([] { _exit(1); }); });
    struct sigaction now {};
    do sigaction(SIGHUP, nullptr, &now);
    while (now.sa_handler == SIG_DFL);
    kill(getpid(), SIGHUP);
    int came = 0;
    sigwait(&hangup, &came);
    end.ask();
    waiting.get();
    _exit(came == SIGHUP ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  BOOST_TEST(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
