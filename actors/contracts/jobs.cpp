// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/contracts/jobs.hpp>

#include <troupe/actors/support/texts.hpp>
#include <troupe/devices/present_devices.hpp>

namespace troupe::contracts {

error not_copied(const std::exception_ptr& failure, const std::vector<c10::Device>& staged_on) {
  errc code = errc::function_failed;
  try {
    std::rethrow_exception(failure);
  } catch (const error& known) {
    code = known.code();
  } catch (...) {
  }
  return error(code, "its tensors, which come from " + devices::names_of_accelerators(staged_on) +
                       ", could not be made ready to leave: " + support::text_of(failure));
}

}  // namespace troupe::contracts
