// SPDX-License-Identifier: BSD-3-Clause
#include "suite.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

#include "../support/peers.hpp"

namespace troupe::bench {

namespace {

/// A number in memory that two processes share: one process raises the number, and the other process waits for it.
class turn_number {
 public:
  static constexpr std::uint32_t over = ~std::uint32_t{0};

  void set(std::uint32_t turn, bool wakes) {
    value_.store(turn, std::memory_order_release);
    if (wakes) futex(FUTEX_WAKE, 1, nullptr);
  }
  /// Returns the number when it is at least `turn`. Throws std::runtime_error if a sleeping process is not woken for 20 s.
  std::uint32_t wait(std::uint32_t turn, bool sleeps) {
    for (;;) {
      const auto seen = value_.load(std::memory_order_acquire);
      if (seen >= turn) return seen;
      if (!sleeps) continue;
      const timespec longest{20, 0};
      if (futex(FUTEX_WAIT, seen, &longest) != 0 && errno == ETIMEDOUT) throw std::runtime_error("the other process is gone");
    }
  }

 private:
  long futex(int operation, std::uint32_t value, const timespec* longest) {
    return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&value_), operation, value, longest, nullptr, 0);
  }

  alignas(64) std::atomic<std::uint32_t> value_{0};
};

struct exchanged {
  turn_number asked;
  turn_number answered;
};

/// Memory that this process and its children share. The question of `bytes` bytes stands behind `turns`, and the answer behind it.
class shared_exchange {
 public:
  explicit shared_exchange(std::size_t bytes) : bytes_(bytes) {
    memory_ = ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("mmap failed");
    turns_ = new (memory_) exchanged;
  }
  ~shared_exchange() { ::munmap(memory_, size()); }
  shared_exchange(const shared_exchange&) = delete;
  shared_exchange& operator=(const shared_exchange&) = delete;

  exchanged& turns() { return *turns_; }
  char* question() { return static_cast<char*>(memory_) + sizeof(exchanged); }
  char* answer() { return question() + bytes_; }

 private:
  std::size_t size() const { return sizeof(exchanged) + 2 * bytes_; }

  std::size_t bytes_;
  void* memory_ = nullptr;
  exchanged* turns_ = nullptr;
};

/// Keeps the compiler from leaving out what was written to the memory.
void benchmark_keeps(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

std::vector<double> exchanges_in_memory(int runs, std::size_t bytes, bool sleeps) {
  shared_exchange with(bytes);
  std::vector<char> message(bytes, 'x');
  const other_process server([&](int, const auto&) {
    for (std::uint32_t turn = 1;; ++turn) {
      if (with.turns().asked.wait(turn, sleeps) == turn_number::over) return;
      std::memcpy(with.answer(), with.question(), bytes);
      with.turns().answered.set(turn, sleeps);
    }
  });
  std::uint32_t turn = 0;
  auto taken = times_of(runs, [&] {
    std::memcpy(with.question(), message.data(), bytes);
    with.turns().asked.set(++turn, sleeps);
    with.turns().answered.wait(turn, sleeps);
    std::memcpy(message.data(), with.answer(), bytes);
  });
  with.turns().asked.set(turn_number::over, true);
  return taken;
}

}  // namespace

std::vector<double> caf_requests(int runs, std::size_t bytes, std::chrono::microseconds pause) {
  const std::string loopback = "127.0.0.1";
  const other_process server([&](int stop, const auto& tell) { serve_caf_echo(loopback, tell, [=] { wait_for(stop); }); });
  caf_link link(loopback, server.told());
  caf_asker asker(link);
  const std::string text(bytes, 'x');
  return told_times(runs, [&] {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const auto begin = std::chrono::steady_clock::now();
    asker.ask(text);
    return microseconds_since(begin);
  });
}

std::vector<double> tcp_exchanges(int runs, std::size_t bytes) {
  const other_process server([](int, const auto& tell) { serve_echo(tell); });
  tcp_floor floor(server.told());
  return told_times(runs,
                    [&] { return floor.seconds(1, std::max<std::size_t>(bytes, 1)) * 1e6; });  // nothing travels with 0 bytes
}

std::vector<double> spinning_exchanges(int runs, std::size_t bytes) { return exchanges_in_memory(runs, bytes, false); }

std::vector<double> sleeping_exchanges(int runs, std::size_t bytes) { return exchanges_in_memory(runs, bytes, true); }

std::vector<double> copies(int runs, std::size_t bytes) {
  std::vector<char> from(bytes + 1, 'x');
  std::vector<char> to(bytes + 1);
  return times_of(runs, [&] {
    std::memcpy(to.data(), from.data(), bytes);
    std::memcpy(from.data(), to.data(), bytes);
    benchmark_keeps(from.data());
  });
}

measured_turns::measured_turns(int turns, const std::function<std::vector<double>()>& measure) {
  for (int turn = 0; turn < turns; ++turn) turns_.push_back(in_own_process(measure));
}

std::vector<double> measured_turns::all(std::size_t figure) const {
  std::vector<double> values;
  for (const auto& turn : turns_) values.push_back(turn.at(figure));
  return values;
}

double measured_turns::median(std::size_t figure) const { return percentile(all(figure), 0.5); }

}  // namespace troupe::bench
