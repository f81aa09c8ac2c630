// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/metrics/page_server.hpp>

#include <chrono>
#include <exception>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <troupe/messages/errors.hpp>

namespace troupe::metrics {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr std::chrono::milliseconds pause_after_error{100};  // after a failed accept, for example without a free descriptor

/// One connection: reads a request, writes an answer, and ends.
class connection : public std::enable_shared_from_this<connection> {
 public:
  connection(tcp::socket socket, const page_server::maker& make) : tcp_stream_(std::move(socket)), make_(make) {
    request_.header_limit(page_server::longest_header);
    request_.body_limit(0);
  }

  /// Calls `over` once, when the connection has ended.
  void start(std::function<void()> over) {
    over_ = std::move(over);
    tcp_stream_.expires_after(std::chrono::seconds(page_server::patience_s));
    http::async_read_header(
      tcp_stream_, buffer_, request_,
      [self = shared_from_this()](const beast::error_code& problem, std::size_t) { self->answer(problem); });
  }

  void close() {
    beast::error_code ignored;
    tcp_stream_.socket().close(ignored);
  }

 private:
  page made() {
    const auto& question = request_.get();
    if (question.method() != http::verb::get && question.method() != http::verb::head)
      return {405, {}, "expected the method GET or HEAD\n"};
    const std::string target(question.target());
    try {
      return make_(target.substr(0, target.find('?')));
    } catch (const std::exception& problem) {
      return {500, {}, problem.what() + std::string("\n")};
    }
  }

  void answer(const beast::error_code& problem) {
    if (problem == http::error::header_limit)
      write({431, {}, "the header of the request has more than " + std::to_string(page_server::longest_header) + " bytes\n"});
    else if (problem.category() == http::make_error_code(http::error::bad_method).category() &&
             problem != http::error::end_of_stream && problem != http::error::partial_message)
      write({400, {}, "expected a request of HTTP/1.1: " + problem.message() + "\n"});
    else if (problem)
      finish();
    else
      write(made());
  }

  void write(page what) {
    answer_.result(what.status);
    answer_.version(11);
    answer_.set(http::field::content_type, what.type.empty() ? page{}.type : what.type);
    answer_.set(http::field::cache_control, "no-store");
    if (what.status == 405) answer_.set(http::field::allow, "GET, HEAD");
    answer_.keep_alive(false);
    const auto bytes = what.text.size();
    if (request_.is_header_done() && request_.get().method() == http::verb::head) what.text.clear();
    answer_.body() = std::move(what.text);
    answer_.content_length(bytes);
    serializer_.emplace(answer_);
    http::async_write(tcp_stream_, *serializer_,
                      [self = shared_from_this()](const beast::error_code&, std::size_t) { self->finish(); });
  }

  void finish() {
    beast::error_code ignored;
    tcp_stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    close();
    if (const auto over = std::exchange(over_, nullptr)) over();
  }

  beast::tcp_stream tcp_stream_;
  const page_server::maker& make_;
  beast::flat_buffer buffer_{page_server::longest_header + 1024};
  http::request_parser<http::empty_body> request_;
  http::response<http::string_body> answer_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::function<void()> over_;
};

tcp::endpoint look_up(asio::io_context& context, const std::string& host, std::uint16_t port) {
  tcp::resolver resolver(context);
  return resolver.resolve(host, std::to_string(port), tcp::resolver::passive | tcp::resolver::numeric_service)->endpoint();
}

}  // namespace

class page_server::implementation {
 public:
  implementation(const std::string& host, std::uint16_t port, maker make) : make_(std::move(make)) {
    try {
      const auto where = look_up(context_, host, port);
      acceptor_.open(where.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(port != 0));
      acceptor_.bind(where);
      acceptor_.set_option(tcp::acceptor::reuse_address(true));  // for port 0 too: see node_runtime::listen()
      acceptor_.listen();
      port_ = acceptor_.local_endpoint().port();
    } catch (const boost::system::system_error& problem) {
      throw error(errc::misuse, "can't serve the pages /healthz and /metrics at " + host + ":" + std::to_string(port) + ": " +
                                  problem.code().message() + "; choose another address with --metrics");
    }
    accept();
    thread_ = std::thread([this] { context_.run(); });
  }

  ~implementation() {
    asio::post(context_, [this] {
      acceptor_.close();
      again_.cancel();
      for (const auto& each : open_) each->close();
      context_.stop();
    });
    thread_.join();
  }
  implementation(const implementation&) = delete;
  implementation& operator=(const implementation&) = delete;

  std::uint16_t port() const noexcept { return port_; }

 private:
  void accept() {
    acceptor_.async_accept([this](const beast::error_code& problem, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (problem) {
        again_.expires_after(pause_after_error);
        again_.async_wait([this](const beast::error_code& cancelled) {
          if (!cancelled) accept();
        });
        return;
      }
      serve(std::move(socket));
      accept();
    });
  }

  void serve(tcp::socket socket) {
    if (open_.size() >= most_connections) {
      open_.front()->close();
      open_.pop_front();
    }
    const auto added = open_.insert(open_.end(), std::make_shared<connection>(std::move(socket), make_));
    (*added)->start([this, which = added->get()] { open_.remove_if([&](const auto& each) { return each.get() == which; }); });
  }

  const maker make_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer again_{context_};
  std::list<std::shared_ptr<connection>> open_;  // from the oldest to the newest
  std::uint16_t port_ = 0;
  std::thread thread_;
};

page_server::page_server(const std::string& host, std::uint16_t port, maker make)
    : implementation_(std::make_unique<implementation>(host, port, std::move(make))) {}

page_server::~page_server() = default;

std::uint16_t page_server::port() const noexcept { return implementation_->port(); }

}  // namespace troupe::metrics
