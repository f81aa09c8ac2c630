// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/gate/tls_session_test.cpp
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actors/certificates/identity.hpp>
#include <troupe/actors/gate/credentials.hpp>
#include <troupe/actors/gate/endpoint.hpp>
#include <troupe/actors/gate/refusal.hpp>
#include <troupe/messages/expect.hpp>

struct ssl_st;

namespace troupe::gate {

/// TLS 1.3 over a connected socket that does not block. The owner keeps the socket open and waits for its events. One thread at
/// a time may use the session.
///
///   state      meaning                                              next state
///   shaking    the two ends prove who they are                      shake_hands(): shaking, proven or refused
///   proven     both ends have proven a certificate of one cluster   read(), write(), shake_hands(): proven or broken
///   refused    the connection is over, without a proof              none
///   broken     the connection is over, after the proof              none
///
///   TL-1  before the state is `proven`, read() and peek() return no byte of the other end, and write() takes no byte.
///   TL-2  write() takes bytes only when all bytes that it took before have left. So at most `most_taken` bytes wait here, and
///         at most `most_unsent` with all that TLS adds.
///   TL-3  bytes that wait here leave by flush(). write() and shake_hands() begin with a flush().
///   TL-4  a key of this end encrypts at most `most_records` records; then this end takes a new key. AES-GCM with one key is
///         secure for 2^24.5 records (RFC 8446, 5.5), which a connection that trains reaches within hours.
///   TL-5  after the proof the other end may send messages of TLS itself (new keys, tickets): one for each
///         `bytes_for_extra_message` bytes of data, and `free_extra_messages` more. A connection with more such messages is
///         over, because OpenSSL would read them for ever.
///   TL-6  a call of shake_hands(), read() or peek() stops reading the socket once the socket gives fewer bytes than there is
///         space for. Another read would cost a system call, and find nothing. Bytes that come later make the socket readable.
///   TL-7  an alert of a called end that has not proven who it is may be forged. Such an alert sets `refusal::may_pass`.
///   TL-8  up to `most_kept` bytes that more bytes follow (`goes_on`) wait for the next write(), and leave with its bytes by
///         one system call. flush() does not send them.
class tls_session final : public endpoint {
 public:
  enum class state { shaking, proven, refused, broken };
  enum class progress { wants_to_read, wants_to_write, proven, failed };
  static constexpr std::size_t most_taken = std::size_t{64} << 10;
  static constexpr std::size_t most_kept = std::size_t{4} << 10;
  static constexpr std::size_t most_records = std::size_t{1} << 16;
  /// The most bytes that wait here (TL-2): `most_taken` bytes of data, and what TLS adds, such as an answer to a new key of the
  /// other end.
  static constexpr std::size_t most_unsent = 2 * most_taken;
  static constexpr std::size_t bytes_for_extra_message = 1024;
  static constexpr std::uint64_t free_extra_messages = 8;

  /// `whom`: the address that this end calls. A session with the same text is resumed. Throws std::bad_alloc.
  tls_session(std::shared_ptr<const credentials> own, int socket, end which, std::string whom = {});
  ~tls_session() override;

  /// Goes on with the handshake as far as that is possible without waiting.
  progress shake_hands();
  /// Whether both ends have proven who they are. Stays true when the connection is over.
  bool is_proven() const noexcept { return state_ == state::proven || state_ == state::broken; }
  /// Why the connection is over: one line, which names the certificate if one came.
  const refusal& problem() const noexcept { return end_.problem; }
  /// Who is at the other end. Pre: is_proven().
  const certificates::identity& other() const noexcept {
    TROUPE_EXPECT(is_proven());
    return other_;
  }
  /// Whether the handshake has resumed an earlier session.
  bool is_resumed() const;
  /// How often this end has taken a new key. For tests.
  std::uint64_t key_updates() const noexcept { return key_updates_; }

  /// As readv(2) on a socket that does not block, except that it reads until both buffers are full or the socket has nothing
  /// more. `peek` leaves the bytes where they are, and reads into the first buffer only.
  ssize_t read(const iovec& first, const iovec& second) override;
  ssize_t peek(const iovec& into);
  /// Whether read() may return bytes although the socket has none.
  bool has_unread() const override;
  /// As send(2) on a socket that does not block. The bytes that it takes may leave later (TL-3).
  ssize_t write(const char* from, std::size_t bytes, bool goes_on) override;
  bool flush() override;
  bool has_unsent() const noexcept override { return unsent_.begin < unsent_.records.size(); }

 private:
  struct bio_functions;

  bool renew_key();
  bool send_unsent();
  bool is_flooded() const;
  bool is_unproven_alert(unsigned long reason) const;
  progress fail(int result);
  ssize_t failed_io(int result);

  struct free_ssl {
    void operator()(ssl_st* what) const noexcept;
  };
  proving_end end_;
  std::unique_ptr<ssl_st, free_ssl> ssl_;
  state state_ = state::shaking;
  bool has_ended_ = false;   // the socket said that the other end has closed
  bool is_drained_ = false;  // in this call the socket gave fewer bytes than there was space for
  certificates::identity other_;
  struct {
    std::vector<char> records;  // that wait for the socket
    std::size_t begin = 0;
    bool is_kept = false;  // they wait for the next write()
  } unsent_;
  std::size_t records_ = 0;  // records that the current key of this end has encrypted
  std::uint64_t key_updates_ = 0;
  std::uint64_t received_ = 0;        // bytes that read() has returned
  std::uint64_t extra_messages_ = 0;  // messages of TLS itself that came after the proof
};

/// Waits until the two ends have proven who they are, for at most `patience`. Returns why they have not; nothing if they have.
std::optional<refusal> prove_within(tls_session& session, int socket, std::chrono::milliseconds patience);

}  // namespace troupe::gate
