// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace troupe {

/// The kinds of errors between nodes. The text that travels with a code says where the error happened and what to do.
enum class errc : std::uint8_t {
  none = 0,
  /// A message could not be read: its header or its sizes are not what the protocol says.
  malformed_message,
  /// A tensor can't travel (layout, dtype, device or quantisation).
  unsupported_tensor,
  /// The peer is not known, or did not become known in time.
  unknown_peer,
  /// The peer is down or cut off.
  peer_down,
  /// A deadline passed.
  deadline_passed,
  /// No function, module, object or actor of that name is registered on the node.
  unknown_function,
  /// A user function, hook or autograd function threw.
  function_failed,
  /// A gradient has another shape, dtype or count than its tensor.
  invalid_gradient,
  /// The context is unknown on the node, or was released.
  unknown_context,
  /// The pass was aborted after an error on another node.
  pass_aborted,
  /// A peer speaks another version of the protocol, has a name that is taken, or asks for what the node does not allow.
  refused,
  /// The node is stopping.
  stopping,
  /// The API was used in a way that it does not allow.
  misuse,
  /// More would be under way to the peer than the send limit allows, and this thread must not wait.
  busy,
};

/// Returns a short text for a code.
const char* to_text(errc code) noexcept;

/// The exception that users of the C++ API get: what() names the node, the function and the reason.
class error : public std::runtime_error {
 public:
  error(errc code, const std::string& text) : std::runtime_error(text), code_(code) {}
  errc code() const noexcept { return code_; }

 private:
  errc code_;
};

}  // namespace troupe
