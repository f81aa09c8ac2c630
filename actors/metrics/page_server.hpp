// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::metrics {

struct page {
  unsigned status = 200;  // of HTTP
  std::string type = "text/plain; charset=utf-8";
  std::string text;
};

/// Serves pages by HTTP/1.1 to programs that monitor this process.
///   SV-1  whatever clients do, the server has one thread, at most `most_connections` connections and `longest_header` bytes of
///         each request. If one more client connects, the server closes the oldest connection.
///   SV-2  a connection is closed after `patience_s` seconds, and after its first answer.
///   SV-3  only GET and HEAD get a page: other methods get status 405. An unknown path gets 404, a header that is too long 431,
///         a request that is not HTTP 400, and a path whose maker throws 500.
class page_server {
 public:
  static constexpr std::size_t most_connections = 64;
  static constexpr std::size_t longest_header = 8192;
  static constexpr int patience_s = 5;

  /// Makes the page for a path ("/metrics"), on the server's thread. The maker returns status 404 if there is no such page.
  using maker = std::function<page(const std::string& path)>;

  /// Listens at an address or host name; port 0: any free one. Throws troupe::error (misuse) with the address and the reason.
  page_server(const std::string& host, std::uint16_t port, maker make);
  /// Closes all connections. Waits for a maker that runs.
  ~page_server();

  std::uint16_t port() const noexcept;

 private:
  class implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace troupe::metrics
