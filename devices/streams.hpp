// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <troupe/engine/stream_order.hpp>

namespace troupe::devices {

/// Orders the work of one backward pass on the streams of an accelerator. No function of this class blocks the calling thread.
/// Streams wait for events of other streams instead.
///   SO-1  a function of the graph runs with the stream of its forward function as current stream. A function without such a
///         stream runs with the current streams of the caller.
///   SO-2  if a gradient was made on another stream than its consumer's, the consumer's stream waits for the work that made the
///         gradient. This wait comes before the gradient is added to a sum or read by the consumer. Sums are made on the
///         consumer's stream.
///   SO-3  if a stream uses a tensor that was made on another stream, the tensor's memory is not reused before that use has
///         ended.
///   SO-4  a sum is never made in memory that another stream may still read.
///   SO-5  at the end of the pass, also after an error, the caller's current streams wait for every stream that the pass used.
///   SO-6  if all work is on one stream, no event is recorded.
///   SO-7  SO-1 to SO-6 also hold for a function that a lane runs on another thread. The function's consumers wait for
///         the work of the function. They do not wait for later work of the lane on the same stream.
///   SO-8  if a leaf's gradient is made on one stream and accumulated on another, the process prints one warning. libtorch
///         prints the same warning (at::Context::setWarnOnAccumulateGradStreamMismatch).
///   SO-9  with libtorch 2.13 or newer, in a graph capture: no stream of the capture waits for a stream outside of it. A
///         function whose stream is outside runs on the stream of its gradient if at::Context::overrideStaleCaptureStream() is
///         on. If it is off, a function on the default stream throws, and so does a leaf on another stream than the caller's.
///         libtorch does the same, for leaves from 2.14 on, and also warns that it skips a wait at the end of the pass.
///   SO-10  is_on_this_stream() says yes only if no other stream makes or reads the sum.
class streams final : public engine::stream_order {
 public:
  streams(const engine::plan& graph, c10::DeviceType type);

  void begin() override;
  void end() override;
  void enter(const engine::plan::vertex& function) override;
  void leave() noexcept override;
  events run_elsewhere(const engine::plan::vertex& function, const std::vector<at::Tensor>& outputs,
                       const std::function<void()>& work) const override;
  void enter_after(const engine::plan::vertex& function, events made) override;
  void add(const engine::plan::vertex& consumer, std::uint32_t slot, at::Tensor& buffer, at::Tensor&& value) override;
  void add(const engine::plan::vertex& consumer, std::uint32_t slot, at::Tensor& value,
           const std::function<void()>& sum) override;
  bool is_on_this_stream(const engine::plan::vertex& consumer, std::uint32_t slot, const at::Tensor& buffer) const override;
  void give_to_caller(const at::Tensor& result) override;

 private:
  using event = std::shared_ptr<c10::Event>;

  // The state of one input of a function. `moved_to`, of the first input, is the stream on which the function runs in place of
  // its own (SO-9). `used_on` is the stream that uses the input's gradient. If another stream made the
  // gradient, `used_on` has to wait for the event `made`. Otherwise both are empty.
  struct arrival {
    event made;
    std::optional<c10::Stream> used_on;
    std::optional<c10::Stream> moved_to;
    bool shared = false;  // other tensors may share the memory
  };

  std::optional<c10::Stream> stream_of(const engine::plan::vertex& function) const;
  std::optional<c10::Stream> in_effect(const engine::plan::vertex& function, c10::Device device) const;
  c10::Stream in_capture(const engine::plan::vertex& consumer, const c10::Stream& making, const c10::Stream& use);
  event record_event(const c10::Stream& stream);
  void enter_stream(const engine::plan::vertex& function);
  void await(arrival& input);
  bool may_be_read_elsewhere(const at::Tensor& value) const;

  c10::impl::VirtualGuardImpl accelerator_;
  std::vector<c10::Stream> callers_;  // current streams of the caller, by device
  std::vector<arrival> arrivals_;     // by input slot of the graph
  std::vector<c10::Stream> used_;
  std::vector<c10::Stream> used_by_leaves_;
  bool several_ = false;  // functions run on more than one stream
  std::optional<c10::StreamGuard> entered_;
  events made_;  // recorded after the work of the entered function
};

}  // namespace troupe::devices
