// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/optimizer_saves.hpp>

#include <system_error>
#include <utility>

#include <troupe/actors/objects/checkpoint.hpp>
#include <troupe/actors/optimizer_checkpoints.hpp>
#include <troupe/actors/support/call_scope.hpp>
#include <troupe/actors/support/lost_exception.hpp>
#include <troupe/actors/support/texts.hpp>

namespace troupe {

void optimizer_saves::save(const std::string& folder, const attributes& about, const std::string& node_folder) {
  settle();
  optimizer_checkpoints checkpoints(shards_, folder);
  checkpoints.write(checkpoints.snapshot(about, node_folder));
}

future<done> optimizer_saves::start(const std::string& folder, const attributes& about, const std::string& node_folder) {
  detail::continuation_scope::refuse_to_wait();  // the thread of the save before may run it
  settle();
  optimizer_checkpoints checkpoints(shards_, folder);
  auto manifest = checkpoints.snapshot(about, node_folder);
  how_ = std::make_shared<ending>();
  written_ = {};
  // `finish` runs in the first `get`, which tells the error.
  written_.set_finish([how = how_](done&) {
    how->is_told = true;
    if (how->failure) std::rethrow_exception(how->failure);
  });
  auto write = [checkpoints = std::move(checkpoints), manifest = std::move(manifest), how = how_, written = written_,
                bounds = support::call_scope::current_bounds()]() mutable {
    const support::call_scope scope({}, {}, {}, {}, bounds);
    try {
      checkpoints.write(manifest);
    } catch (...) {
      how->failure = std::current_exception();
    }
    written.set_value({});
  };
  try {
    writes_ = std::jthread(write);
  } catch (const std::system_error&) {
    write();  // there are no more threads
  }
  return written_;
}

void optimizer_saves::expect_saved() {
  if (how_ != nullptr && written_.ready()) settle();
}

/// Waits for the last save. Throws its error, unless it was told.
void optimizer_saves::settle() {
  if (how_ == nullptr) return;
  const bool is_told = how_->is_told;
  try {
    written_.get();
  } catch (const error&) {
    if (!is_told) throw;
  }
}

void optimizer_saves::end() noexcept {
  if (writes_.get_id() == std::this_thread::get_id())
    writes_.detach();  // a continuation of the save calls end(): nothing is left to write
  else if (writes_.joinable()) {
    auto* observer = written_.ready() ? nullptr : support::call_scope::observer();
    if (observer != nullptr) observer->blocked();  // a call frees its worker slot, which calls of the save may need
    writes_.join();
    if (observer != nullptr) observer->resumed();
  }
  if (how_ != nullptr && how_->failure && !how_->is_told.exchange(true))
    support::report_lost_exception("a save of an optimizer", support::text_of(how_->failure).c_str());
}

}  // namespace troupe
