// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/errors.hpp>

#include <array>
#include <cstddef>

namespace troupe {

const char* to_text(errc code) noexcept {
  constexpr std::array texts{
    // in the order of the codes
    "no error",
    "a message could not be read",
    "a tensor can't travel between nodes",
    "the peer is not known",
    "the peer is down",
    "a deadline passed",
    "no function, module or object of that name on the node",
    "a function failed",
    "a gradient does not fit its tensor",
    "the context is unknown or was released",
    "the pass was aborted",
    "the peer refused",
    "the node is stopping",
    "the API was used in a way it does not allow",
    "too much is under way to the peer",
  };
  static_assert(texts.size() == static_cast<std::size_t>(errc::busy) + 1);
  const auto number = static_cast<std::size_t>(code);
  return number < texts.size() ? texts[number] : "an error this version does not know";  // the code comes from a newer node
}

}  // namespace troupe
