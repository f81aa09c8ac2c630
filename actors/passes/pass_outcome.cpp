// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/passes/pass_outcome.hpp>

#include <utility>

#include <troupe/actors/logging/node_log.hpp>
#include <troupe/actors/membership/peer_directory.hpp>
#include <troupe/actors/services/node_identity.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/actors/support/texts.hpp>

namespace troupe::passes {

pass_outcome::pass_outcome(used_services here, contracts::context_record_ptr record, pass_number pass, future<done> result)
    : here_(here),
      record_(std::move(record)),
      pass_(pass),
      begin_ns_(here.log.is_on(severity::info) ? support::steady_ns() : 0),
      result_(std::move(result)) {}

void pass_outcome::tell() {
  if (told_.exchange(true)) return;
  here_.log.debug("passes", [this] { return description() + ": complete after " + support::duration_text(age_ns()); });
  result_.set_value(done{});
}

void pass_outcome::fail(const error& reason) {
  if (told_.exchange(true)) return;
  here_.log.info("passes",
                 [&] { return description() + ": failed after " + support::duration_text(age_ns()) + ": " + reason.what(); });
  result_.set_error(reason);
}

std::string pass_outcome::description() const {
  std::string names;
  support::add_quoted(names, here_.self.name());
  for (const auto who : record_->members.peers()) support::add_quoted(names, here_.directory.name(who));
  return "pass " + std::to_string(pass_.value) + " of context " + to_string(record_->id()) + " over " + names;
}

std::int64_t pass_outcome::age_ns() const { return support::steady_ns() - begin_ns_; }

}  // namespace troupe::passes
