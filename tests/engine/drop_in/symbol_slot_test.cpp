// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/drop_in/symbol_slot.hpp>

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include <boost/test/unit_test.hpp>

using troupe::engine::symbol_slot;

namespace {

int doubled(int value) { return 2 * value; }
void* const ours = reinterpret_cast<void*>(doubled);

/// A library that calls abs() of the C library through a slot: one that the loader protects ("now") or one that it fills at the
/// first call ("lazy").
struct library {
  explicit library(const std::string& kind) : name("libslot_" + kind + ".so") {
    void* const loaded = ::dlopen((TROUPE_SLOT_LIBRARIES "/" + name).c_str(), RTLD_LAZY | RTLD_LOCAL);
    BOOST_TEST_REQUIRE(loaded != nullptr, ::dlerror());
    call = reinterpret_cast<int (*)(int)>(::dlsym(loaded, "calls_abs"));
  }

  std::string name;
  int (*call)(int);
};

/// The line of /proc/self/maps with an address.
std::string mapping_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    char* end = nullptr;
    const auto from = std::strtoull(line.c_str(), &end, 16), to = std::strtoull(end + 1, nullptr, 16);
    if (from <= reinterpret_cast<std::uintptr_t>(address) && reinterpret_cast<std::uintptr_t>(address) < to) return line;
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_replaced_slot_leads_calls_elsewhere_and_back) {  // OT-1
  for (const char* const kind : {"now", "lazy"}) {
    const library caller(kind);
    const symbol_slot slot(caller.name, "abs");
    void* const before = slot.address();
    BOOST_TEST(slot.replace(before, ours));
    BOOST_TEST(caller.call(-4) == -8);
    BOOST_TEST(!slot.replace(before, before), "the slot has another address");
    BOOST_TEST(slot.replace(ours, before));
    BOOST_TEST(caller.call(-4) == 4);
  }
}

BOOST_AUTO_TEST_CASE(calls_on_another_thread_go_to_the_old_or_to_the_new_address) {  // OT-1
  for (const char* const kind : {"now", "lazy"}) {
    const library caller(kind);
    caller.call(-4);  // the loader fills the slot
    const symbol_slot slot(caller.name, "abs");
    void* const before = slot.address();
    std::atomic<bool> is_done{false};
    std::atomic<int> latest{0}, others{0};
    std::thread calling([&] {
      while (!is_done) {
        latest = caller.call(-4);
        if (latest != 4 && latest != -8) ++others;
      }
    });
    for (int i = 0; i < 100; ++i) {
      slot.replace(before, ours);
      while (latest != -8) std::this_thread::yield();
      slot.replace(ours, before);
      while (latest != 4) std::this_thread::yield();
    }
    is_done = true;
    calling.join();
    BOOST_TEST(others == 0);
  }
}

BOOST_AUTO_TEST_CASE(the_memory_of_a_slot_keeps_its_protection) {  // OT-2
  for (const char* const kind : {"now", "lazy"}) {
    const library caller(kind);
    const symbol_slot slot(caller.name, "abs");
    const std::string before = mapping_of(slot.place());
    BOOST_TEST(before.find(std::string(kind) == "now" ? " r--p " : " rw-p ") != std::string::npos, before);
    void* const address = slot.address();
    slot.set(ours);
    BOOST_TEST(slot.address() == ours);
    BOOST_TEST(mapping_of(slot.place()) == before);
    slot.set(address);
  }
}

BOOST_AUTO_TEST_CASE(a_slot_that_is_not_there_is_an_error) {
  const library caller("now");
  BOOST_CHECK_THROW(symbol_slot("libnone.so", "abs"), std::runtime_error);
  BOOST_CHECK_THROW(symbol_slot(caller.name, "labs"), std::runtime_error);
}
