// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/part_archive.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <ATen/core/jit_type.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/serialization/unpickler.h>

namespace troupe::objects {

namespace {

constexpr auto class_of_archives = "__torch__.Module";

class bytes_of_part : public caffe2::serialize::ReadAdapterInterface {
 public:
  bytes_of_part(part_archive::reader read, std::size_t size) : read_(std::move(read)), size_(size) {}
  std::size_t size() const override { return size_; }
  std::size_t read(std::uint64_t position, void* to, std::size_t size, const char*) const override {
    return read_(position, to, size);
  }

 private:
  part_archive::reader read_;
  std::size_t size_;
};

/// The types of the lists in a part. libtorch's own parser of types would follow a text of any depth.
c10::TypePtr list_named(const std::string& name) {
  for (const auto& element :
       {c10::TypePtr(c10::StringType::get()), c10::TypePtr(c10::IntType::get()), c10::TypePtr(c10::FloatType::get()),
        c10::TypePtr(c10::BoolType::get()), c10::TypePtr(c10::TensorType::get())})
    if (auto list = c10::ListType::create(element); list->annotation_str() == name) return list;
  TORCH_CHECK(false, "it holds the type ", name, ", expected plain values");
}

std::function<std::size_t(char*, std::size_t)> reader_of(std::string_view bytes) {
  return [left = bytes](char* to, std::size_t size) mutable {
    const auto got = left.copy(to, size);
    left.remove_prefix(got);
    return got;
  };
}

/// Whether all elements of the tensor lie in the record that was read for its storage. libtorch takes sizes, strides and the length of
/// the storage from the pickle, and looks at none of them.
bool lies_within(const at::Tensor& tensor, std::size_t record) {
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  auto left =
    static_cast<std::int64_t>(record / tensor.itemsize()) - 1 - tensor.storage_offset();  // steps from the first element
  if (tensor.storage_offset() < 0) return false;
  bool is_empty = false;
  for (const auto size : sizes) {
    if (size < 0) return false;
    is_empty = is_empty || size == 0;
  }
  if (is_empty) return true;
  for (std::size_t i = 0; i < sizes.size() && left >= 0; ++i) {
    if (strides[i] < 0) return false;
    if (sizes[i] == 1 || strides[i] == 0) continue;
    left = strides[i] > left / (sizes[i] - 1) ? -1 : left - strides[i] * (sizes[i] - 1);
  }
  return left >= 0;
}

void check_tensors(const c10::IValue& value, const std::unordered_map<const void*, std::size_t>& records) {
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    if (!tensor.defined()) return;
    TORCH_CHECK(tensor.layout() == at::kStrided && tensor.has_storage(), "it holds a tensor that is not dense");
    const auto found = records.find(tensor.storage().data());
    TORCH_CHECK(lies_within(tensor, found == records.end() ? 0 : found->second), "it holds a tensor of ", tensor.sizes(),
                ", and not all of its elements");
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) check_tensors(each, records);
  }
}

}  // namespace

part_archive::part_archive(reader read, std::size_t size) {
  caffe2::serialize::PyTorchStreamReader records(std::make_shared<bytes_of_part>(std::move(read), size));
  const auto unit = std::make_shared<torch::jit::CompilationUnit>();
  const auto resolve = [&](const c10::QualifiedName& name) {
    if (name.qualifiedName() == class_of_archives)
      return c10::StrongTypePtr(unit, c10::ClassType::create(name, unit, /*is_module=*/true));
    return c10::StrongTypePtr(unit, list_named(name.qualifiedName()));
  };
  const auto load = [&](const c10::StrongTypePtr& type, const c10::IValue& state) {
    TORCH_CHECK(!values_ && state.isGenericDict() && type.type_->kind() == c10::TypeKind::ClassType,
                "it holds more than one object of plain values");
    values_ = state.toGenericDict();
    return c10::ivalue::Object::create(type, 0);
  };
  std::unordered_map<const void*, std::size_t> sizes;  // of the records of tensors, by where they are in memory
  const auto read_record = [&](const std::string& name) {
    auto [data, bytes] = records.getRecord("data/" + name);
    sizes[data.get()] = bytes;
    return std::move(data);
  };
  const auto [pickle, pickle_bytes] = records.getRecord("data.pkl");
  torch::jit::Unpickler(reader_of({static_cast<const char*>(pickle.get()), pickle_bytes}), resolve, load, read_record,
                        at::Device(at::kCPU))
    .parse_ivalue();
  TORCH_CHECK(values_, "it holds no values");
  for (const auto& each : *values_) check_tensors(each.value(), sizes);
}

c10::IValue part_archive::find(const std::string& name) const {
  const auto found = values_->find(name);
  TORCH_CHECK(found != values_->end(), "it has no value '", name, "'");
  return found->value();
}

}  // namespace troupe::objects
