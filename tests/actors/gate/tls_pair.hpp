// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <troupe/actors/gate/credentials.hpp>
#include <troupe/actors/gate/tls_session.hpp>

#include "actors/network/loopback_connection.hpp"

namespace troupe::test {

using gate::credentials;
using gate::tls_session;
using end_of = gate::end;
using progress = tls_session::progress;
using proof = std::shared_ptr<credentials>;

/// Both ends of a connection, used by one thread. The bytes that one end has sent are there when the other end reads.
struct tls_pair {
  tls_pair(const proof& calling, const proof& called, const std::string& whom = "there") {
    for (const auto* each : {&ends.caller, &ends.called}) ::fcntl(each->get(), F_SETFL, O_NONBLOCK);
    caller = std::make_unique<tls_session>(calling, ends.caller.get(), end_of::calling, whom);
    answering = std::make_unique<tls_session>(called, ends.called.get(), end_of::called);
  }

  /// Goes on with both handshakes until neither end has anything more to do.
  void shake_hands() {
    for (int i = 0; i < 20; ++i) {
      at_caller = caller->shake_hands();
      at_called = answering->shake_hands();
    }
  }

  loopback_connection ends;
  std::unique_ptr<tls_session> caller;
  std::unique_ptr<tls_session> answering;
  progress at_caller{};
  progress at_called{};
};

/// Reads up to `bytes` bytes. Nothing if the connection is over.
inline std::optional<std::string> read_some(tls_session& from, std::size_t bytes) {
  std::string result(bytes, '\0');
  const auto came = from.read({result.data(), bytes / 2}, {result.data() + bytes / 2, bytes - bytes / 2});
  if (came < 0 && errno == EAGAIN) return "";
  if (came <= 0) return std::nullopt;
  result.resize(static_cast<std::size_t>(came));
  return result;
}

/// Moves all of `bytes` from one end to the other.
inline std::string move(tls_session& from, tls_session& to, const std::string& bytes) {
  std::string came;
  std::size_t gone = 0;
  for (int i = 0; i < 100'000 && came.size() < bytes.size(); ++i) {
    if (gone < bytes.size()) {
      const auto taken = from.write(bytes.data() + gone, bytes.size() - gone, false);
      if (taken > 0) gone += static_cast<std::size_t>(taken);
    } else {
      from.flush();
    }
    const auto more = read_some(to, 100'000);
    if (!more) break;
    came += *more;
  }
  return came;
}

inline proof of(const std::string& kit, const std::string& revoked = {}) { return std::make_shared<credentials>(kit, revoked); }

}  // namespace troupe::test
