// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/current_outlet.hpp>

#include <utility>

#include <c10/util/Exception.h>

#include <troupe/engine/describe.hpp>
#include <troupe/engine/graph_task.hpp>
#include <troupe/engine/ready_queue.hpp>
#include <troupe/engine/recv_backward.hpp>

namespace troupe::engine {

namespace {
thread_local outlet_scope* current = nullptr;
}

outlet_scope::outlet_scope(outlet* to, const ready_queue& ready) noexcept : to_(to), ready_(ready), outer_(current) {
  current = this;
}

outlet_scope::~outlet_scope() { current = outer_; }

void outlet_scope::emit(const recv_backward& from, std::vector<at::Tensor> gradients) {
  TORCH_CHECK(current != nullptr && current->to_ != nullptr, "troupe::recv_backward of message ", describe(from.message),
              ": this backward pass does not leave its node, but its graph goes on at another one. Call backward() of the context ",
              describe(from.context), " instead");
  current->to_->emit(from, std::move(gradients), !current->ready_.empty());
}

}  // namespace troupe::engine
