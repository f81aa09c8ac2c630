// SPDX-License-Identifier: BSD-3-Clause
#include "suite_parts.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>

#include <troupe/actors/support/owned_descriptor.hpp>

#include "other_process.hpp"
#include "tcp_floor.hpp"

namespace troupe::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds answer_deadline{20};

struct caf_config : caf::actor_system_config {
  caf_config() { load<caf::io::middleman>(); }
};

void write_all(int to, const void* data, std::size_t bytes) {
  for (const auto* at = static_cast<const char*>(data); bytes > 0;) {
    const auto written = ::write(to, at, bytes);
    if (written <= 0) throw std::runtime_error("the process that asked is gone");
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

/// False if the other end has closed before.
bool read_all(int from, void* data, std::size_t bytes) {
  for (auto* at = static_cast<char*>(data); bytes > 0;) {
    const auto got = ::read(from, at, bytes);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

void wait_for(int stop) {
  char word;
  [[maybe_unused]] const auto asked = ::read(stop, &word, 1);
}

/// Answers each text with the same text.
void serve_caf(const std::function<void(std::uint16_t)>& tell_port, int stop) {
  caf_config config;
  caf::actor_system system(config);
  const auto echo =
    system.spawn([](caf::event_based_actor*) -> caf::behavior { return {[](std::string& text) { return std::move(text); }}; });
  const auto port = system.middleman().publish(echo, 0, "127.0.0.1");
  if (!port) throw std::runtime_error("CAF can't listen on loopback");
  tell_port(*port);
  wait_for(stop);
  caf::anon_send_exit(echo, caf::exit_reason::user_shutdown);
}

/// Memory of two processes: whose turn it is, and the message.
struct exchanged {
  alignas(64) std::atomic<std::uint64_t> asked{0};
  alignas(64) std::atomic<std::uint64_t> answered{0};
  alignas(64) char question[small_message];
  alignas(64) char answer[small_message];
};

constexpr std::uint64_t over = ~std::uint64_t{0};

void answer_exchanges(exchanged& with) {
  for (std::uint64_t turn = 1;; ++turn) {
    std::uint64_t seen = 0;
    while ((seen = with.asked.load(std::memory_order_acquire)) < turn) {
    }
    if (seen == over) return;
    std::memcpy(with.answer, with.question, small_message);
    with.answered.store(turn, std::memory_order_release);
  }
}

}  // namespace

std::vector<double> in_own_process(const std::function<std::vector<double>()>& measure) {
  auto found = support::make_pipe();
  if (!found.read || !found.write) throw std::runtime_error("pipe2 failed");
  const other_process part([&](int, const auto&) {
    const auto values = measure();
    const std::uint64_t count = values.size();
    write_all(found.write.get(), &count, sizeof count);
    write_all(found.write.get(), values.data(), values.size() * sizeof(double));
  });
  found.write = {};
  std::uint64_t count = 0;
  std::vector<double> values;
  if (read_all(found.read.get(), &count, sizeof count)) values.resize(count);
  if (count == 0 || !read_all(found.read.get(), values.data(), values.size() * sizeof(double)))
    throw std::runtime_error("a part of the suite failed; nothing was written");
  return values;
}

std::vector<double> caf_requests(int runs, std::size_t bytes, std::chrono::microseconds pause) {
  const other_process server([](int stop, const auto& tell) { serve_caf(tell, stop); });
  const auto port = server.told();
  caf_config config;
  caf::actor_system system(config);
  const auto echo = system.middleman().remote_actor("127.0.0.1", port);
  if (!echo) throw std::runtime_error("CAF does not reach the other process: " + system.render(echo.error()));
  caf::scoped_actor self{system};
  const std::string text(bytes, 'x');
  std::vector<double> taken;
  for (int i = -warm_up_of(runs); i < runs; ++i) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const auto begin = clock::now();
    self->request(*echo, answer_deadline, text)
      .receive(
        [](const std::string&) {},
        [&](const caf::error& reason) { throw std::runtime_error("a request of CAF failed: " + system.render(reason)); });
    const std::chrono::duration<double, std::micro> time = clock::now() - begin;
    if (i >= 0) taken.push_back(time.count());
  }
  return taken;
}

std::vector<double> tcp_exchanges(int runs, std::size_t bytes) {
  const other_process server([](int, const auto& tell) { serve_echo(tell); });
  tcp_floor floor(server.told());
  std::vector<double> taken;
  for (int i = -warm_up_of(runs); i < runs; ++i) {
    const auto seconds = floor.seconds(1, bytes);
    if (i >= 0) taken.push_back(seconds * 1e6);
  }
  return taken;
}

std::vector<double> spinning_exchanges(int runs) {
  void* const memory = ::mmap(nullptr, sizeof(exchanged), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap failed");
  auto& with = *new (memory) exchanged;
  std::vector<double> taken;
  {
    const other_process server([&](int, const auto&) { answer_exchanges(with); });
    char received[small_message];
    for (int i = -warm_up_of(runs); i < runs; ++i) {
      const auto turn = static_cast<std::uint64_t>(i + warm_up_of(runs) + 1);
      const auto begin = clock::now();
      std::memset(with.question, static_cast<int>(turn), small_message);
      with.asked.store(turn, std::memory_order_release);
      while (with.answered.load(std::memory_order_acquire) < turn) {
      }
      std::memcpy(received, with.answer, small_message);
      const std::chrono::duration<double, std::micro> time = clock::now() - begin;
      if (i >= 0) taken.push_back(time.count());
    }
    with.asked.store(over, std::memory_order_release);
  }
  ::munmap(memory, sizeof(exchanged));
  return taken;
}

}  // namespace troupe::bench
