// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/errors.hpp>

namespace troupe {

const char* to_text(errc code) noexcept {
  switch (code) {
    case errc::none:
      return "no error";
    case errc::malformed_message:
      return "a message could not be read";
    case errc::unsupported_tensor:
      return "a tensor can't travel between nodes";
    case errc::unknown_peer:
      return "the peer is not known";
    case errc::peer_down:
      return "the peer is down";
    case errc::deadline_passed:
      return "a deadline passed";
    case errc::unknown_function:
      return "no function, module or object of that name on the node";
    case errc::function_failed:
      return "a function failed";
    case errc::invalid_gradient:
      return "a gradient does not fit its tensor";
    case errc::unknown_context:
      return "the context is unknown or was released";
    case errc::pass_aborted:
      return "the pass was aborted";
    case errc::refused:
      return "the peer refused";
    case errc::stopping:
      return "the node is stopping";
    case errc::misuse:
      return "the API was used in a way it does not allow";
    case errc::busy:
      return "too much is under way to the peer";
  }
  return "an error this version does not know";  // the code comes from a newer node
}

}  // namespace troupe
