// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/message_form.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/rpc/utils.h>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace torchtroupe {

namespace rpc = torch::distributed::rpc;

namespace {

constexpr const char* name_of_bytes = "m";
// Opcodes of pickle, from its protocol 4 on, that name functions and classes.
constexpr char opcode_of_name = '\x93', first_opcode_of_code = '\x82', last_opcode_of_code = '\x84';
constexpr std::string_view name_of_tensors("\x8c\x15torchtroupe._pickling\x94\x8c\x07_tensor\x94\x93");
constexpr std::size_t most_bytes_beside = std::size_t{64} << 10;

// The bytes begin with this, then have one character for each tensor (the sum of the flags below), the strides of each tensor
// with gaps, and then the message's own bytes.
constexpr char requires_grad = 1, has_gaps = 2;
struct head {
  std::int32_t type;
  std::uint32_t tensors;
  std::uint32_t is_pickled;  // the tensors are in the bytes
  std::uint32_t is_beside;   // the message's own bytes are the last tensor
};

bool travels(const at::Tensor& tensor) {
  return !tensor.defined() || !tensor.device().is_cpu() || troupe::why_it_cannot_travel(tensor).empty();
}

/// Whether the tensor has gaps that travel: PyTorch's transport copies tensors with larger ones too.
bool keeps_gaps(const at::Tensor& tensor) {
  constexpr std::uint64_t small = 8192;
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_non_overlapping_and_dense()) return false;
  const auto extent = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size());
  return at::has_internal_overlap(tensor) != at::MemOverlap::Yes && extent <= 2 * tensor.nbytes() + small;
}

at::Tensor with_gaps(const at::Tensor& tensor, at::IntArrayRef strides) {
  return at::empty_strided(tensor.sizes(), strides, tensor.options()).copy_(tensor);
}

/// The bytes, which begin with `front`; null if there are none.
const std::string* bytes_of(const troupe::attributes& values, head& front) {
  const auto found = values.find(name_of_bytes);
  const auto* const bytes = found == values.end() ? nullptr : std::get_if<std::string>(&found->second.value);
  if (bytes == nullptr || bytes->size() < sizeof front) return nullptr;
  std::memcpy(&front, bytes->data(), sizeof front);
  return bytes;
}

template <class Bytes>
at::Tensor as_tensor(Bytes bytes) {
  auto held = std::make_shared<Bytes>(std::move(bytes));
  const auto size = static_cast<std::int64_t>(held->size());
  return at::from_blob(
    held->data(), {size}, [held](void*) {}, at::kByte);
}

}  // namespace

message_form to_form(rpc::Message& message, bool copies) {
  head front{message.type(), 0, 0, 0};
  message_form result;
  std::string flags, strides, pickled;
  const auto& tensors = message.tensors();
  if (std::all_of(tensors.begin(), tensors.end(), travels)) {
    for (const auto& each : tensors) {
      char flag = each.defined() && each.requires_grad() ? requires_grad : 0;
      if (keeps_gaps(each)) {
        flag |= has_gaps;
        strides.append(reinterpret_cast<const char*>(each.strides().data()), each.strides().size() * sizeof(std::int64_t));
      }
      flags.push_back(flag);
      result.tensors.push_back(!each.defined() ? each : copies ? each.detach().clone() : each.detach());
    }
  } else {
    front.is_pickled = 1;
    pickled = rpc::wireSerialize(message.payload(), tensors);
  }
  front.tensors = static_cast<std::uint32_t>(flags.size());
  const auto& payload = message.payload();
  const auto size = front.is_pickled != 0 ? pickled.size() : payload.size();
  front.is_beside = size > most_bytes_beside ? 1 : 0;
  std::string bytes(reinterpret_cast<const char*>(&front), sizeof front);
  bytes += flags + strides;
  if (front.is_beside == 0)
    bytes.append(front.is_pickled != 0 ? pickled.data() : payload.data(), size);
  else
    result.tensors.push_back(front.is_pickled != 0 ? as_tensor(std::move(pickled)) : as_tensor(std::vector<char>(payload)));
  result.values.emplace(name_of_bytes, std::move(bytes));
  return result;
}

c10::intrusive_ptr<rpc::Message> from_form(std::vector<at::Tensor> tensors, const troupe::attributes& values) {
  const auto refuse = [](const char* why) {
    throw troupe::error(troupe::errc::malformed_message,
                        std::string("a message of torch.distributed.rpc can't be read: ") + why);
  };
  head front{};
  const auto* const bytes = bytes_of(values, front);
  if (bytes == nullptr) refuse("it has no bytes");
  if (front.tensors + (front.is_beside != 0 ? 1 : 0) != tensors.size() || bytes->size() < sizeof front + front.tensors)
    refuse("the bytes speak of another number of tensors than came");
  const char* own = bytes->data() + sizeof front + front.tensors;
  const char* const end = bytes->data() + bytes->size();
  for (std::size_t i = 0; i < front.tensors; ++i) {
    if (((*bytes)[sizeof front + i] & has_gaps) == 0) continue;
    auto& tensor = tensors[i];
    std::vector<std::int64_t> strides(tensor.defined() ? static_cast<std::size_t>(tensor.dim()) : 0);
    const auto length = strides.size() * sizeof(std::int64_t);
    if (strides.empty() || static_cast<std::size_t>(end - own) < length) refuse("it lacks strides");
    std::memcpy(strides.data(), own, length);
    own += length;
    for (const auto each : strides)
      if (each < 0 || each > static_cast<std::int64_t>(2 * tensor.nbytes()) + 8192) refuse("its strides are too large");
    tensor = with_gaps(tensor, strides);
  }
  auto size = static_cast<std::size_t>(end - own);
  at::Tensor beside;
  if (front.is_beside != 0) {
    beside = std::move(tensors.back());
    tensors.pop_back();
    if (!beside.defined() || beside.scalar_type() != at::kByte || !beside.device().is_cpu() || !beside.is_contiguous())
      refuse("its bytes are a tensor of another kind");
    own = static_cast<const char*>(beside.const_data_ptr());
    size = beside.nbytes();
  }
  const auto type = static_cast<rpc::MessageType>(front.type);
  if (front.is_pickled != 0) {
    auto [payload, all] = rpc::wireDeserialize(own, size);
    return c10::make_intrusive<rpc::Message>(std::move(payload), std::move(all), type);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (((*bytes)[sizeof front + i] & requires_grad) != 0) tensors[i].set_requires_grad(true);
  return c10::make_intrusive<rpc::Message>(std::vector<char>(own, own + size), std::move(tensors), type);
}

bool is_plain_result(const troupe::attributes& values) {
  head front{};
  const auto* const bytes = bytes_of(values, front);
  if (bytes == nullptr || front.type != rpc::MessageType::PYTHON_RET || front.is_pickled != 0 || front.is_beside != 0)
    return false;
  const auto own = std::string_view(*bytes).substr(std::min(bytes->size(), sizeof front + front.tensors));
  const auto is_code = [](char each) { return each >= first_opcode_of_code && each <= last_opcode_of_code; };
  if (std::any_of(own.begin(), own.end(), is_code)) return false;
  const auto names = std::count(own.begin(), own.end(), opcode_of_name);
  return names == 0 || (names == 1 && own.find(name_of_tensors) != own.npos);
}

}  // namespace torchtroupe
