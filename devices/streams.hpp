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

/// Keeps the functions of one pass in order on the streams of an accelerator. No function here makes the thread wait; waits
/// are queued on streams.
///   SO-1  a function runs with the stream of its forward as current stream. A function without such a stream runs with the
///         caller's streams.
///   SO-2  if a gradient was made on another stream than its consumer's, the consumer's stream waits for the work that made the
///         gradient. This wait comes before the consumer's work, or before the sum to which the gradient is added. Sums are
///         made on the consumer's stream.
///   SO-3  if a stream uses memory that was made on another stream, the memory is given to no other tensor before that use has
///         ended.
///   SO-4  a sum is never made in memory that another stream may still be reading.
///   SO-5  at the end, also after an error, the caller's current streams wait for every stream that the pass used.
///   SO-6  if everything is on one stream, no event is recorded.
///   SO-7  a function that a lane runs on another thread is ordered in the same way. No consumer waits for other work that the
///         lane has queued on the stream meanwhile.
///   SO-8  if a leaf's gradient is accumulated on another stream than the one on which a function has made it, the process
///         gets one warning, as from libtorch (at::Context::setWarnOnAccumulateGradStreamMismatch).
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
  void give_to_caller(const at::Tensor& result) override;

 private:
  using event = std::shared_ptr<c10::Event>;

  // The event for which the consumer of an input waits. Set if the gradient was made on another stream than the one on which it
  // is used.
  struct arrival {
    event made;
    std::optional<c10::Stream> used_on;
    bool shared = false;  // the memory has other readers
  };

  std::optional<c10::Stream> in_effect(torch::autograd::Node& function, c10::Device device) const;
  event now(const c10::Stream& stream);
  void enter_stream(torch::autograd::Node& function);
  void await(arrival& input);
  bool may_be_read_elsewhere(const at::Tensor& value) const;

  c10::impl::VirtualGuardImpl accelerator_;
  std::vector<c10::Stream> callers_;  // current streams of the caller, by device
  std::vector<arrival> arrivals_;     // by slot
  std::vector<c10::Stream> used_;
  bool several_ = false;  // functions run on more than one stream
  std::optional<c10::StreamGuard> entered_;
  events made_;  // recorded for the entered function
};

}  // namespace troupe::devices
