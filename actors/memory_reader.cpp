// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/memory_reader.hpp>

#include <exception>
#include <utility>

#include <caf/send.hpp>

#include <troupe/actors/company.hpp>

namespace troupe {

memory_reader_actor::behavior_type make_memory_reader(memory_reader_actor::pointer, company* here) {
  return {
    [here](incoming_offer_ptr& job) {
      try {
        job->failure = here->arriving().read(job->offer, job->given);
      } catch (const std::exception& reason) {  // no memory
        job->failure = error(errc::function_failed, reason.what());
      }
      caf::anon_send(here->face(), std::move(job));
    },
  };
}

}  // namespace troupe
