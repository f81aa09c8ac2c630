// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/state_file.hpp>

#include <cstddef>

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <troupe/actors/support/durable_file.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe {

void save_state(const std::string& path, const named_tensors& state) {
  c10::impl::GenericDict all(c10::StringType::get(), c10::TensorType::get());
  for (const auto& [name, tensor] : state) {
    if (!tensor.defined()) throw error(errc::misuse, "save_state: tensor '" + name + "' is undefined");
    // The clone's storage holds the elements of this tensor alone.
    if (!all.insert(name, tensor.detach().cpu().contiguous().clone()).second)
      throw error(errc::misuse, "save_state: two tensors are called '" + name + "'");
  }
  support::durable_file file(path);
  try {
    std::string pickled;
    // Without tags: a tag is a global of torch.jit, which torch.load refuses with weights_only=True.
    torch::jit::Pickler pickler([&](const char* data, std::size_t size) { pickled.append(data, size); }, nullptr, nullptr,
                                nullptr, nullptr, /*tag_aggregates=*/false);
    pickler.protocol();
    pickler.pushIValue(all);
    pickler.stop();
    caffe2::serialize::PyTorchStreamWriter archive([&](const void* data, std::size_t size) {
      file.write(data, size);
      return size;  // commit() reports a failure
    });
    archive.writeRecord("data.pkl", pickled.data(), pickled.size());
    std::size_t number = 0;
    for (const auto& each : pickler.tensorData())
      archive.writeRecord("data/" + std::to_string(number++), each.const_data_ptr(), each.nbytes());
    archive.writeEndOfFile();
  } catch (const c10::Error& failed) {
    throw error(errc::function_failed, "can't write '" + path + "': " + failed.what_without_backtrace());
  }
  file.commit();
}

}  // namespace troupe
