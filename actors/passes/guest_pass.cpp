// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/guest_pass.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace troupe::passes {

namespace {

struct guest_book {
  std::mutex mutex;
  std::map<context_id, guest_maker> makers;
  std::atomic<std::size_t> count{0};
};

guest_book& book() {
  static guest_book of_process;
  return of_process;
}

}  // namespace

void set_guest(context_id context, guest_maker guest) {
  auto& all = book();
  const std::lock_guard lock(all.mutex);
  if (guest)
    all.makers.insert_or_assign(context, std::move(guest));
  else
    all.makers.erase(context);
  all.count = all.makers.size();
}

std::shared_ptr<guest_pass> make_guest(context_id context) {
  auto& all = book();
  if (all.count == 0) return nullptr;
  guest_maker make;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.makers.find(context);
    if (found != all.makers.end()) make = found->second;
  }
  return make ? make() : nullptr;
}

}  // namespace troupe::passes
