// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/state_file.hpp>

#include <exception>

#include <troupe/actors/objects/safetensors.hpp>
#include <troupe/actors/support/durable_file.hpp>
#include <troupe/actors/support/texts.hpp>
#include <troupe/messages/errors.hpp>

namespace troupe {

void save_state(const std::string& path, const named_tensors& state) {
  const objects::tensor_writer writer(state, {{"format", "pt"}});
  support::durable_file file(path);
  writer.write([&file](const void* data, std::size_t size) { file.write(data, size); });
  file.commit();
}

named_tensors load_state(const std::string& path) {
  const auto file = support::file_location(path).read();
  try {
    return objects::read_tensors(file, path).tensors;
  } catch (const error&) {
    throw;
  } catch (const std::exception& refused) {
    throw error(errc::function_failed, "'" + path + "' is no safetensors file: " + support::text_of(refused));
  }
}

}  // namespace troupe
