// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/part_archive.hpp>

#include <memory>
#include <utility>

#include <ATen/core/jit_type.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/serialization/import_read.h>

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
  torch::jit::readArchiveAndTensors("data", "", "", resolve, load, at::Device(at::kCPU), records);
  TORCH_CHECK(values_, "it holds no values");
}

c10::IValue part_archive::find(const std::string& name) const {
  const auto found = values_->find(name);
  TORCH_CHECK(found != values_->end(), "it has no value '", name, "'");
  return found->value();
}

}  // namespace troupe::objects
