// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

/// Orders the work of a pass whose functions run on streams of an accelerator. The engine calls this interface on the thread
/// that runs the pass, except for run_elsewhere(). devices/streams.hpp implements the interface and lists its promises.
class stream_order {
 public:
  /// Streams on which a function has queued work. Each event happens when the work of the function on that stream has run. For
  /// a stream that is not in the list, a consumer waits for all work on the stream, later work included.
  using events = std::vector<std::pair<c10::Stream, std::shared_ptr<c10::Event>>>;

  virtual ~stream_order() = default;

  /// The thread begins or continues the pass. The streams that are current now are the caller's streams until end().
  virtual void begin() = 0;
  virtual void end() = 0;

  /// enter() and leave() enclose everything that belongs to one function, from taking its inputs to handing over its outputs.
  virtual void enter(const plan::vertex& function) = 0;
  virtual void leave() noexcept = 0;

  /// Runs `work`, which makes `outputs`, on the streams of the function. Returns the events of the outputs. Called on the
  /// thread of a worker, whose current streams are those of the caller. The inputs were taken before, between enter() and
  /// leave().
  virtual events run_elsewhere(const plan::vertex& function, const std::vector<at::Tensor>& outputs,
                               const std::function<void()>& work) const = 0;

  /// As enter(), for a function that run_elsewhere() has run: only its outputs still have to be handed over.
  virtual void enter_after(const plan::vertex& function, events made) = 0;

  /// Adds a gradient to an input of `consumer`. The gradient was made by the entered function or, if none is entered, by the
  /// caller.
  virtual void add(const plan::vertex& consumer, std::uint32_t slot, at::Tensor& buffer, at::Tensor&& value) = 0;

  /// As the other add(), but calls `sum` to add `value`. `sum` runs on the stream on which `consumer` will run. That stream
  /// waits for `value` first.
  virtual void add(const plan::vertex& consumer, std::uint32_t slot, at::Tensor& value, const std::function<void()>& sum) = 0;

  /// Whether all work on `buffer`, the sum of an input of `consumer`, is on the stream that is current now, which is that of
  /// the entered function, and nothing else refers to its memory.
  virtual bool is_on_this_stream(const plan::vertex& consumer, std::uint32_t slot, const at::Tensor& buffer) const = 0;

  /// To be called for each tensor that the caller of the pass gets. The entered function has made or received the tensor.
  virtual void give_to_caller(const at::Tensor& result) = 0;
};

/// Calls begin() and end() for a pass or a burst on this thread. end() is called after an error too.
class pass_streams {
 public:
  explicit pass_streams(stream_order* order) : order_(order), thrown_(std::uncaught_exceptions()) {
    if (order_ != nullptr) order_->begin();
  }
  ~pass_streams() noexcept(false) {
    if (order_ == nullptr) return;
    try {
      order_->end();
    } catch (...) {
      if (std::uncaught_exceptions() == thrown_)  // an error of a function takes precedence
        throw;
    }
  }
  pass_streams(const pass_streams&) = delete;
  pass_streams& operator=(const pass_streams&) = delete;

 private:
  stream_order* order_;
  int thrown_;
};

/// Calls enter() or enter_after() for a function, and leave() at the end of the scope. Does nothing for a pass without streams.
class entered_stream {
 public:
  entered_stream(stream_order* order, const plan::vertex& function) : order_(order) {
    guarded([&] { order_->enter(function); });
  }
  entered_stream(stream_order* order, const plan::vertex& function, stream_order::events made) : order_(order) {
    guarded([&] { order_->enter_after(function, std::move(made)); });
  }
  ~entered_stream() {
    if (order_ != nullptr) order_->leave();
  }
  entered_stream(const entered_stream&) = delete;
  entered_stream& operator=(const entered_stream&) = delete;

 private:
  template <class Enter>
  void guarded(Enter enter) {
    if (order_ == nullptr) return;
    try {
      enter();
    } catch (...) {
      order_->leave();
      throw;
    }
  }

  stream_order* order_;
};

/// Functions that know the accelerators of this process. devices/streams.cpp registers them in every program that links
/// troupe::streams.
struct accelerator_support {
  std::unique_ptr<stream_order> (*make_order)(const plan& graph);  // null: all functions run on the CPU
  std::optional<c10::DeviceType> (*type)();                        // none: the process has no accelerator
};
void register_accelerators(const accelerator_support& how) noexcept;

/// Returns the stream order for the pass; null if all functions run on the CPU.
///   AS-1  if no accelerator_support is registered, make_stream_order() throws for a graph with a function on an accelerator.
///         The text names the function.
std::unique_ptr<stream_order> make_stream_order(const plan& graph);

/// Returns the type of the devices whose work a stream order orders; none if this process has no accelerator, or no
/// accelerator_support.
std::optional<c10::DeviceType> type_with_stream_order();

}  // namespace troupe::engine
