// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include <troupe/actors/future.hpp>
#include <troupe/messages/attributes.hpp>

namespace troupe {

class optimizer_shards;

/// Saves that are written beside the steps of an optimizer: see optimizer::start_save(). One thread at a time may use it.
///   BK-1  a checkpoint has the state at its start(), bit by bit. Steps beside a save have the bits of steps without one.
///   BK-2  a step waits for the copy of the state, but neither for a disk nor for parts of the checkpoint that travel.
///   BK-3  one save runs at a time: save(), start() and end() wait for the end of the save before.
///   BK-4  an error of a save is told by `get` of its future, or else once by expect_saved(), save() or start(), or else on
///         stderr.
class optimizer_saves {
 public:
  explicit optimizer_saves(optimizer_shards& shards) : shards_(shards) {}
  ~optimizer_saves() { end(); }
  optimizer_saves(const optimizer_saves&) = delete;
  optimizer_saves& operator=(const optimizer_saves&) = delete;

  /// Saves on this thread. save() and start() throw the error of the save before, unless it was told, and then save nothing.
  void save(const std::string& folder, const attributes& about, const std::string& node_folder);
  /// Returns once each node has a copy of its state.
  future<done> start(const std::string& folder, const attributes& about, const std::string& node_folder);
  /// Throws the error of the last save, if that save has ended and the error was not told.
  void expect_saved();
  /// Waits for the last save. What was not told by then goes to stderr. A continuation of the save may call end().
  void end() noexcept;

 private:
  struct ending {
    std::exception_ptr failure;  // set before the future is complete
    std::atomic<bool> is_told{false};
  };

  void settle();

  optimizer_shards& shards_;
  future<done> written_;         // of the last save
  std::shared_ptr<ending> how_;  // the same save ends; null before the first save
  std::jthread writes_;
};

}  // namespace troupe
