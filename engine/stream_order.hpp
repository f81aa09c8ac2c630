// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>

#include <troupe/engine/plan.hpp>

namespace troupe::engine {

/// Keeps a pass in order whose functions run on streams of an accelerator. The engine asks, on the thread that runs the pass;
/// devices/streams.hpp answers, with the promises.
class stream_order {
 public:
  virtual ~stream_order() = default;

  /// This thread begins, or goes on, with the pass. Its current streams are the caller's until end().
  virtual void begin() = 0;
  virtual void end() = 0;

  /// Around all that belongs to one function, from the taking of its inputs to the handing over of its outputs.
  virtual void enter(const plan::vertex& function) = 0;
  virtual void leave() noexcept = 0;

  /// Adds a gradient that the entered function (or the caller, where none is) has made to an input of `consumer`.
  virtual void add(const plan::vertex& consumer, std::uint32_t slot, at::Tensor& buffer, at::Tensor&& value) = 0;

  /// The same where another adds: `value` is made ready for `sum`, which runs where `consumer` will.
  virtual void add(const plan::vertex& consumer, std::uint32_t slot, at::Tensor& value, const std::function<void()>& sum) = 0;

  /// The caller will have this tensor, which the entered function has made or been given.
  virtual void give_to_caller(const at::Tensor& result) = 0;
};

/// Begin and end of a pass, or of a stretch of it, on this thread; the end also after an error.
class pass_streams {
 public:
  explicit pass_streams(stream_order* order) : order_(order), thrown_(std::uncaught_exceptions()) {
    if (order_ != nullptr) {
      order_->begin();
    }
  }
  ~pass_streams() noexcept(false) {
    if (order_ == nullptr) {
      return;
    }
    try {
      order_->end();
    } catch (...) {
      if (std::uncaught_exceptions() == thrown_) {  // else a function's error comes first
        throw;
      }
    }
  }
  pass_streams(const pass_streams&) = delete;
  pass_streams& operator=(const pass_streams&) = delete;

 private:
  stream_order* order_;
  int thrown_;
};

/// Enters a function, and leaves it.
class entered_stream {
 public:
  entered_stream(stream_order& order, const plan::vertex& function) : order_(order) {
    try {
      order_.enter(function);
    } catch (...) {
      order_.leave();
      throw;
    }
  }
  ~entered_stream() { order_.leave(); }
  entered_stream(const entered_stream&) = delete;
  entered_stream& operator=(const entered_stream&) = delete;

 private:
  stream_order& order_;
};

/// Null where all functions run on the CPU: such a pass asks nothing. Defined in devices/streams.cpp.
std::unique_ptr<stream_order> make_stream_order(const plan& graph);

}  // namespace troupe::engine
