// SPDX-License-Identifier: BSD-3-Clause
#include "apps/process_group.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <sstream>
#include <system_error>
#include <thread>

#include <troupe/actors/support/owned_descriptor.hpp>

#include "support/forked_child.hpp"
#include "support/refused_calls.hpp"

using namespace troupe::apps;
using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr auto patience = 20s;

/// Gathers what children write and waits for a line.
class lines {
 public:
  process_group::line_sink sink() {
    return [this](const std::string& name, const std::string& line) {
      {
        std::lock_guard lock(mutex_);
        all_.push_back(name + ": " + line);
      }
      came_.notify_all();
    };
  }
  bool wait_for(const std::string& line) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, patience, [&] { return std::find(all_.begin(), all_.end(), line) != all_.end(); });
  }
  std::vector<std::string> all() {
    std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::string> all_;
};

std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

bool is_alive(pid_t pid) { return kill(pid, 0) == 0; }

/// Waits until a process that is no child of ours has ended.
bool ends(pid_t pid) {
  const support::owned_descriptor life(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!life) return errno == ESRCH;
  pollfd watched{life.get(), POLLIN, 0};
  return poll(&watched, 1, 20000) > 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_child_that_exits_is_reported_once_with_its_status) {  // PG-4
  process_group group;
  auto pid = group.start("three", shell("exit 3"));
  auto end = group.poll_for(patience);
  BOOST_REQUIRE(end);
  BOOST_TEST(end->name == "three");
  BOOST_TEST(end->pid == pid);
  BOOST_TEST(end->how == "exited with 3");
  BOOST_TEST(!group.poll());
  BOOST_TEST(group.running().empty());
}

BOOST_AUTO_TEST_CASE(a_child_that_is_killed_is_reported_with_the_signal) {
  process_group group;
  auto pid = group.start("sleeper", {"sleep", "1000"});
  BOOST_TEST(!group.poll());
  BOOST_TEST(group.running() == std::vector<pid_t>{pid});
  kill(pid, SIGKILL);
  auto end = group.poll_for(patience);
  BOOST_REQUIRE(end);
  BOOST_TEST(end->how == "killed by signal 9 (Killed)");
}

BOOST_AUTO_TEST_CASE(a_program_that_does_not_exist_is_an_error_with_its_name) {
  process_group group;
  auto says = [](const char* text) {
    return [text](const std::system_error& e) { return std::string(e.what()).find(text) == 0; };
  };
  BOOST_CHECK_EXCEPTION(group.start("x", {"/no/such/program", "a"}), std::system_error,
                        says("cannot start '/no/such/program': No such file or directory"));
  BOOST_CHECK_EXCEPTION(group.start("x", {"/etc/passwd"}), std::system_error,
                        says("cannot start '/etc/passwd': Permission denied"));
  BOOST_CHECK_THROW(group.start("x", {}), std::invalid_argument);
  BOOST_TEST(group.running().empty());
  BOOST_TEST(!group.poll());
}

BOOST_AUTO_TEST_CASE(every_line_arrives_with_its_name_before_the_end_is_reported) {  // PG-4
  lines heard;
  process_group group(heard.sink());
  group.start("a", shell("echo one; echo two >&2; printf unfinished"));
  BOOST_REQUIRE(group.poll_for(patience));
  BOOST_TEST(heard.all() == (std::vector<std::string>{"a: one", "a: two", "a: unfinished"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_line_without_end_comes_in_pieces_and_loses_nothing) {
  std::size_t bytes = 0;
  std::size_t longest = 0;
  process_group group([&](const std::string&, const std::string& line) {
    bytes += line.size();
    longest = std::max(longest, line.size());
  });
  group.start("a", shell("head -c 1000000 /dev/zero"));
  BOOST_REQUIRE(group.poll_for(patience));
  BOOST_TEST(bytes == 1000000u);
  BOOST_TEST(longest < 100000u);
}

BOOST_AUTO_TEST_CASE(a_child_whose_own_child_keeps_the_output_open_still_ends) {
  lines heard;
  process_group group(heard.sink());
  group.start("a", shell("sleep 1000 & echo $!"));
  BOOST_REQUIRE(group.poll_for(patience));
  BOOST_REQUIRE_EQUAL(heard.all().size(), 1u);
  kill(std::stoi(heard.all()[0].substr(3)), SIGKILL);
}

BOOST_AUTO_TEST_CASE(stop_all_lets_a_child_say_goodbye) {  // PG-4
  lines heard;
  process_group group(heard.sink());
  group.start("a", shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"));
  BOOST_REQUIRE(heard.wait_for("a: ready"));
  group.stop_all(patience);
  BOOST_TEST(heard.all().back() == "a: bye");
  BOOST_TEST(!group.poll());
}

BOOST_AUTO_TEST_CASE(stop_all_leaves_no_child_that_ignores_the_signal_or_is_stopped) {  // PG-4, PG-5
  lines heard;
  process_group group(heard.sink());
  auto deaf = group.start("deaf", shell("trap '' TERM; echo ready; while :; do sleep 0.01; done"));
  auto stopped = group.start("stopped", shell("kill -STOP $$"));
  siginfo_t info;
  BOOST_REQUIRE(waitid(P_PID, static_cast<id_t>(stopped), &info, WSTOPPED | WNOWAIT) == 0);
  BOOST_REQUIRE(heard.wait_for("deaf: ready"));
  group.stop_all(50ms);
  BOOST_TEST(!is_alive(deaf));
  BOOST_TEST(!is_alive(stopped));
  BOOST_TEST(group.running().empty());
  BOOST_TEST(!group.poll());
}

BOOST_AUTO_TEST_CASE(a_group_that_was_stopped_starts_children_again) {
  process_group group;
  group.start("a", {"sleep", "1000"});
  group.stop_all(patience);
  group.start("b", shell("exit 0"));
  auto end = group.poll_for(patience);
  BOOST_REQUIRE(end);
  BOOST_TEST(end->name == "b");
}

BOOST_AUTO_TEST_CASE(the_destructor_leaves_nobody_behind) {
  pid_t pid = 0;
  {
    process_group group;
    pid = group.start("a", {"sleep", "1000"});
  }
  BOOST_TEST(!is_alive(pid));
}

BOOST_AUTO_TEST_CASE(no_child_outlives_a_parent_that_is_killed) {  // PG-1
  const auto pipe = support::make_pipe();
  BOOST_REQUIRE(bool{pipe.read});
  pid_t parent = fork();
  if (parent == 0) {
    // The thread that asks for the child ends at once. The child must live until the process ends.
    process_group group;
    pid_t child = 0;
    std::thread([&] { child = group.start("a", {"sleep", "1000"}); }).join();
    if (write(pipe.write.get(), &child, sizeof child) != static_cast<ssize_t>(sizeof child)) _exit(1);
    while (true) pause();
  }
  pid_t child = 0;
  BOOST_REQUIRE(read(pipe.read.get(), &child, sizeof child) == static_cast<ssize_t>(sizeof child));
  BOOST_TEST(is_alive(child));
  kill(parent, SIGKILL);
  BOOST_TEST(waitpid(parent, nullptr, 0) == parent);
  BOOST_TEST(ends(child));
}

/// True if the mask in a line `a: SigIgn: <64 bits in hexadecimal>` has no signal. Signals 32 and 33 do not count: glibc uses
/// both for itself, and lets no program set them.
static bool ignores_nothing(const std::string& line) {
  constexpr unsigned long long of_glibc = 3ULL << 31;
  return (std::stoull(line.substr(line.rfind(':') + 1), nullptr, 16) & ~of_glibc) == 0;
}

BOOST_AUTO_TEST_CASE(a_child_has_its_own_process_group_and_no_signal_blocked_or_ignored) {  // PG-2, PG-3
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto* handler = signal(SIGPIPE, SIG_IGN);
  lines heard;
  {
    process_group group(heard.sink());
    auto pid = group.start("a", {"cat", "/proc/self/status", "/proc/self/stat"});
    BOOST_REQUIRE(group.poll_for(patience));
    std::string own;
    for (auto& line : heard.all()) {
      BOOST_TEST((line.find("SigBlk") == std::string::npos || line.find("0000000000000000") != std::string::npos), line);
      BOOST_TEST((line.find("SigIgn") == std::string::npos || ignores_nothing(line)), line);
      own = line;
    }
    std::istringstream fields(own.substr(own.rfind(')') + 2));
    std::string state;
    pid_t parent = 0;
    pid_t process_group_id = 0;
    fields >> state >> parent >> process_group_id;
    BOOST_TEST(process_group_id == pid);
    BOOST_TEST(process_group_id != getpgrp());
  }
  signal(SIGPIPE, handler);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

BOOST_AUTO_TEST_CASE(a_child_reads_the_stdin_that_it_is_given) {  // PG-3
  std::promise<std::string> heard;
  auto input = support::make_pipe();
  BOOST_TEST(::write(input.write.get(), "hello\n", 6) == 6);
  process_group group([&](const std::string&, const std::string& line) { heard.set_value(line); });
  group.start("cat", {"cat"}, input.read.get());
  input.read = {};
  BOOST_TEST(heard.get_future().get() == "hello");
  BOOST_TEST(!group.poll_for(std::chrono::milliseconds(0)).has_value());  // the pipe is open
  input.write = {};
  const auto end = group.poll_for(std::chrono::seconds(20));
  BOOST_TEST((end && end->how == "exited with 0"));
}

BOOST_AUTO_TEST_CASE(a_child_has_an_empty_stdin_and_none_of_the_parents_files) {  // PG-3
  const support::owned_descriptor leak(open("/dev/zero", O_RDONLY));
  const support::owned_descriptor own_stdin(dup(STDIN_FILENO));
  const support::owned_descriptor not_empty(open("/proc/self/status", O_RDONLY));
  BOOST_REQUIRE((leak && own_stdin && not_empty));
  dup2(not_empty.get(), STDIN_FILENO);
  lines heard;
  process_group group(heard.sink());
  group.start("a", shell("wc -c; ls /proc/self/fd | wc -l"));
  BOOST_REQUIRE(group.poll_for(patience));
  BOOST_TEST(heard.all() == (std::vector<std::string>{"a: 0", "a: 4"}),
             boost::test_tools::per_element());  // 0, 1, 2 and ls's folder
  dup2(own_stdin.get(), STDIN_FILENO);
}

BOOST_AUTO_TEST_CASE(a_kernel_without_close_range_and_pidfd_open_keeps_the_promises) {  // PG-6
  const auto status = troupe::test::status_of_child([] {
    if (!troupe::test::refuse_calls({SYS_close_range, SYS_pidfd_open}, ENOSYS)) return 1;
    const support::owned_descriptor low(open("/dev/zero", O_RDONLY));
    const support::owned_descriptor high(dup3(low.get(), 900, 0));
    lines heard;
    process_group group(heard.sink());
    const auto pid = group.start("a", shell("ls /proc/self/fd | wc -l; exit 3"));
    const auto end = group.poll_for(patience);
    if (!end || end->pid != pid || end->how != "exited with 3" || group.poll()) return 2;
    if (heard.all() != std::vector<std::string>{"a: 4"}) return 3;
    const auto sleeper = group.start("sleeper", {"sleep", "1000"});
    if (group.poll() || group.running() != std::vector<pid_t>{sleeper}) return 4;
    kill(sleeper, SIGKILL);
    const auto killed = group.poll_for(patience);
    if (!killed || killed->how != "killed by signal 9 (Killed)") return 5;
    const auto stopped = group.start("stopped", {"sleep", "1000"});
    group.stop_all(patience);
    return is_alive(stopped) || group.poll() ? 6 : 0;
  });
  BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_CASE(what_a_child_writes_to_stderr_goes_to_its_own_sink) {
  lines heard;
  lines messages;
  process_group group(heard.sink(), messages.sink());
  group.start("a", shell("echo result; echo message >&2; printf unfinished >&2"));
  BOOST_REQUIRE(group.poll_for(patience));
  BOOST_TEST(heard.all() == std::vector<std::string>{"a: result"}, boost::test_tools::per_element());
  BOOST_TEST(messages.all() == (std::vector<std::string>{"a: message", "a: unfinished"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(many_threads_start_and_stop_children_at_once) {
  process_group group;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) group.start("a", shell("exit 7"));
    });
  int reported = 0;
  while (reported < 40) {
    auto end = group.poll_for(patience);
    BOOST_REQUIRE(end);
    BOOST_TEST(end->how == "exited with 7");
    ++reported;
  }
  for (auto& t : threads) t.join();
  BOOST_TEST(!group.poll());
}

BOOST_AUTO_TEST_CASE(the_own_program_is_a_file_that_can_be_started) {
  process_group group([](auto&, auto&) {});
  group.start("self", {own_program(), "--list_content"});
  auto end = group.poll_for(patience);
  BOOST_REQUIRE(end);
  BOOST_TEST(end->how == "exited with 0");
}
