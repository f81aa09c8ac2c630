// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/script_module.hpp>

#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>
#include <torch/script.h>

#include <troupe/actors/calls/call_values.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/plain_text.hpp>

namespace troupe {

remote_module create_script(const peer& where, const torch::jit::Module& script) {
  detail::continuation_scope::refuse_to_wait();
  classic_ostringstream out;
  try {
    script.save(out);
  } catch (const std::exception& refused) {
    throw error(errc::misuse, std::string("create_script: the module can't be written: ") + refused.what());
  }
  const auto text = std::move(out).str();
  auto bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  const support::call_scope outside;
  const auto unmapped = where.with_devices({});  // no device map: the bytes are not a tensor of the user
  const auto reply = node_access::ask(unmapped, requests::create_script{link_of(where).id()}, {std::move(bytes)}).get();
  return {where, {where.id(), calls::number_from(reply.values, "object")}};
}

}  // namespace troupe
