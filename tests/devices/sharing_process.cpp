// SPDX-License-Identifier: BSD-3-Clause
#include "devices/sharing_process.hpp"

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>

#include "support/simulated_sharing.hpp"

namespace troupe::test {

namespace {

using namespace std::chrono_literals;

/// What a process and the test's process share. Made before the nursery.
struct exchange {
  exchange()
      : told(static_cast<sharing_process::facts*>(
          ::mmap(nullptr, sizeof(sharing_process::facts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}

  sharing_process::facts* told;
  shared_signal answers;
  shared_signal asks;
  bool used = false;
};

using exchanges = std::array<exchange, 3>;
exchanges& all_exchanges() {
  static auto* const all = new exchanges;
  return *all;
}
exchange& between(std::uint16_t number) { return all_exchanges().at(number); }

template <std::size_t Size>
std::size_t put(const std::string& text, std::array<char, Size>& to) {
  if (text.size() > Size) throw std::length_error("a handle is too long");
  std::copy(text.begin(), text.end(), to.begin());
  return text.size();
}

void share(const std::string& how, std::uint16_t number) {
  simulated::install_shared();
  const auto stream = simulated::new_stream();
  std::optional<simulated::gate> late;
  if (how == "late") late.emplace(stream);
  at::Tensor whole;
  auto& told = *between(number).told;
  std::shared_ptr<devices::shared_event> made;
  {
    const c10::StreamGuard on(stream);
    whole = at::full({sharing_process::before + sharing_process::elements}, 7.0F, at::device(simulated::device()));
    made = simulated::sharing().record(stream);
    const auto place = simulated::sharing().share(whole.narrow(0, sharing_process::before, sharing_process::elements));
    told.offset = place.offset;
    told.allocation_size = put(place.allocation, told.allocation_text);
    told.event_size = put(made->handle(), told.event_text);
  }
  between(number).answers.give();
  between(number).asks.take();
  late.reset();
  simulated::synchronize();
  if (how == "frees") {
    whole.reset();
    made.reset();
    simulated::synchronize();
  }
  between(number).answers.give();
  between(number).asks.take();
}

struct shared_nursery {
  shared_nursery() {
    all_exchanges();
    processes = &own.emplace(share);
  }
  std::optional<nursery> own;
  static inline nursery* processes = nullptr;
};

void expect_answer(std::uint16_t number) {
  if (!between(number).answers.take_within(20s)) throw std::runtime_error("the other process does not answer");
}

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(shared_nursery);

sharing_process::sharing_process(const std::string& how) : pid_(0), number_(0) {
  while (between(number_).used) ++number_;
  between(number_).answers.reset();
  between(number_).asks.reset();
  pid_ = shared_nursery::processes->start(how, number_);
  between(number_).used = true;
  expect_answer(number_);
}

sharing_process::~sharing_process() {
  kill();
  between(number_).used = false;
}

const sharing_process::facts& sharing_process::shared() const { return *between(number_).told; }

void sharing_process::go_on() {
  between(number_).asks.give();
  expect_answer(number_);
}

void sharing_process::kill() { ::kill(pid_, SIGKILL); }

}  // namespace troupe::test
