// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/logging/node_log.hpp>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <troupe/actors/logging/log_lines.hpp>
#include <troupe/actors/logging/reopen_logs.hpp>
#include <troupe/actors/support/steady_clock.hpp>
#include <troupe/messages/errors.hpp>
#include <troupe/messages/mutex.hpp>

namespace troupe::logging {

namespace {

constexpr std::size_t longest_text = 3'800;  // a line then has at most 4,096 bytes, with time, level, node and room

/// The thread that writes the lines of all nodes of the process, and the lines that wait for it.
struct writing_thread {
  spdlog::details::thread_pool pool{node_log::most_waiting, 1, [] {
                                      sigset_t all;
                                      sigfillset(&all);
                                      pthread_sigmask(SIG_BLOCK, &all, nullptr);
                                      pthread_setname_np(pthread_self(), "troupe.log");
                                    }};
  std::atomic<std::size_t> lost_and_told{0};
  const pid_t process = ::getpid();  // a forked child has no thread of this pool

  /// Returns the writing thread of this process. The thread lives as long as any log that has had a line. Throws std::exception
  /// if the system gives no thread.
  static std::shared_ptr<writing_thread> of_process() {
    static checked_mutex mutex;
    static std::weak_ptr<writing_thread> known TROUPE_GUARDED_BY(mutex);
    checked_lock lock(mutex);
    auto result = known.lock();
    if (!result || result->process != ::getpid()) known = result = std::make_shared<writing_thread>();
    return result;
  }

  /// The number of lines that were lost because too many lines waited. Each loss is returned once, and only after the flood:
  /// otherwise the line that reports the loss could be lost too.
  std::size_t lost() {
    if (pool.overrun_counter() == lost_and_told || pool.queue_size() > node_log::most_waiting / 2) return 0;
    const auto all = pool.overrun_counter();
    const auto told = lost_and_told.exchange(all);
    return all > told ? all - told : 0;
  }
};

/// The part of a line that follows the time.
std::string line_body(line_format form, severity level, std::string_view node, std::string_view room, std::string_view text) {
  if (form == line_format::json) {
    auto shown = json_string(one_line(text, longest_text));
    if (shown.size() > longest_text) shown = json_string(one_line(text, longest_text / 2));
    return std::string(R"("level":")") + to_text(level) + R"(","node":)" + json_string(node) + R"(,"room":)" +
           json_string(room) + R"(,"text":)" + shown + "}";
  }
  std::string result = to_text(level);
  result.resize(6, ' ');
  return result.append("node=").append(node).append(" room=").append(room).append(" ").append(one_line(text, longest_text));
}

std::string lines_text(std::size_t count) { return count == 1 ? "1 line" : std::to_string(count) + " lines"; }

spdlog::level::level_enum to_spdlog(severity level) {
  return static_cast<spdlog::level::level_enum>(static_cast<int>(spdlog::level::debug) + static_cast<int>(level));
}

const char* pattern_of(line_format form) {
  return form == line_format::json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z",%v)" : "%Y-%m-%d %H:%M:%S.%e %v";
}

/// Writes lines, on the writing thread. If the system gave no writing thread, the thread that logs writes its lines here.
class descriptor_sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  descriptor_sink(std::string node, line_format form, std::optional<line_descriptor> to)
      : node_(std::move(node)), form_(form), to_(std::move(to)) {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern_of(form)));
  }

  void go_on_in(line_descriptor to) {
    const std::lock_guard lock(mutex_);
    to_ = std::move(to);
  }

 private:
  void sink_it_(const spdlog::details::log_msg& line) override {
    if (!to_) to_ = line_descriptor::standard_error();
    if (const auto lost = to_->lost(); lost > 0) {
      const auto body =
        line_body(form_, severity::warn, node_, "logging", lines_text(lost) + " before this one could not be written");
      spdlog::details::log_msg notice(line.time, {}, {}, to_spdlog(severity::warn), {body.data(), body.size()});
      if (!write(notice)) return;
    }
    write(line);
  }
  bool write(const spdlog::details::log_msg& line) {
    spdlog::memory_buf_t text;
    formatter_->format(line, text);
    return to_->write({text.data(), text.size()});
  }
  void flush_() override {}

  const std::string node_;
  const line_format form_;
  std::optional<line_descriptor> to_;  // empty: stderr, which is opened for the first line
};

/// The logs of this process that have files.
struct logs_with_files {
  struct entry {
    std::weak_ptr<void> log;
    std::function<void()> reopen;
  };
  checked_mutex mutex;
  std::list<entry> entries TROUPE_GUARDED_BY(mutex);

  static logs_with_files& of_process() {
    static logs_with_files all;
    return all;
  }
};

}  // namespace

class node_log::writer {
 public:
  writer(std::string node, line_format form, std::optional<line_descriptor> file)
      : node_(std::move(node)), form_(form), sink_(std::make_shared<descriptor_sink>(node_, form, std::move(file))) {}

  ~writer() {
    try {
      if (const auto held = limit_.held(); held > 0)
        put(severity::warn, "logging", lines_text(held) + " like those above were left out");
    } catch (...) {
    }
  }

  void reopen(const std::string& file, severity least) noexcept {
    const auto say = [&](severity level, const std::string& text) {
      if (level >= least) put(level, "logging", text);
    };
    try {
      try {
        sink_->go_on_in(line_descriptor::append_to(file));
        say(severity::info, "opened the log file again");
      } catch (const troupe::error& problem) {
        say(severity::warn, std::string(problem.what()) + "; the log goes on in the old file");
      }
    } catch (...) {
    }
  }

  bool admits(severity level, std::string_view room, line_limit::kind what) {
    if (level == severity::debug) return true;
    line_limit::verdict verdict;
    {
      checked_lock lock(mutex_);
      verdict = limit_.ask(what, support::steady_ns());
    }
    if (verdict.left_out > 0) put(level, room, lines_text(verdict.left_out) + " like the next one were left out");
    return verdict.admitted;
  }

  void put(severity level, std::string_view room, std::string_view text) {
    std::call_once(started_, [this] { start(); });
    send(level, room, text);
    if (!thread_) return;
    if (const auto lost = thread_->lost(); lost > 0)
      send(severity::warn, "logging",
           lines_text(lost) + " of this process were lost: they came faster than they can be written");
  }

 private:
  void send(severity level, std::string_view room, std::string_view text) {
    const auto body = line_body(form_, level, node_, room, text);
    logger_->log(to_spdlog(level), spdlog::string_view_t(body.data(), body.size()));
  }

  void start() {
    try {
      thread_ = writing_thread::of_process();
      const std::shared_ptr<spdlog::details::thread_pool> pool(thread_, &thread_->pool);
      logger_ = std::make_shared<spdlog::async_logger>(node_, sink_, pool, spdlog::async_overflow_policy::overrun_oldest);
    } catch (const std::exception&) {
      logger_ = std::make_shared<spdlog::logger>(node_, sink_);
    }
    logger_->set_level(spdlog::level::trace);
    logger_->set_error_handler([](const std::string&) {});
  }

  const std::string node_;
  const line_format form_;
  const std::shared_ptr<descriptor_sink> sink_;
  std::once_flag started_;
  std::shared_ptr<writing_thread> thread_;  // null if the system gave no thread
  std::shared_ptr<spdlog::logger> logger_;
  checked_mutex mutex_;
  line_limit limit_ TROUPE_GUARDED_BY(mutex_);
};

node_log::node_log(std::string node, severity least, const std::string& file, line_format form) : least_(least) {
  if (least == severity::off) return;
  std::optional<line_descriptor> to;
  if (!file.empty()) to = line_descriptor::append_to(file);
  writer_ = std::make_shared<writer>(std::move(node), form, std::move(to));
  if (file.empty()) return;
  auto& all = logs_with_files::of_process();
  const checked_lock lock(all.mutex);
  all.entries.remove_if([](const auto& each) { return each.log.expired(); });
  all.entries.push_back({writer_, [mine = std::weak_ptr(writer_), file, least] {
                           if (const auto known = mine.lock()) known->reopen(file, least);
                         }});
}

void reopen_logs() noexcept {
  auto& all = logs_with_files::of_process();
  const checked_lock lock(all.mutex);
  for (const auto& each : all.entries) each.reopen();
}

bool node_log::admits(severity level, std::string_view room, const void* call_site, std::uint64_t about) const {
  return writer_->admits(level, room, {call_site, about});
}

void node_log::put(severity level, std::string_view room, std::string_view text) const { writer_->put(level, room, text); }

}  // namespace troupe::logging
