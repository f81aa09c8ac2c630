// SPDX-License-Identifier: BSD-3-Clause
// Tests devices/cuda/kernels.cu as far as this is possible without a GPU.
#include <boost/test/unit_test.hpp>

#include <dlfcn.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <troupe/devices/cuda/functions.hpp>
#include <troupe/devices/cuda_kernels.hpp>

using namespace troupe;

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  BOOST_REQUIRE_MESSAGE(file, "can't open " << path);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
T read(const std::string& bytes, std::size_t at) {
  T value{};
  BOOST_REQUIRE(at + sizeof(T) <= bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// The architectures of the machine code, and of the code for later GPUs (PTX), in a library that nvcc made. The library has containers
/// (fatbins), each a header and entries: kind (1 PTX, 2 machine code), version, size of its header, size of what follows, and at 28 the
/// architecture.
struct architectures {
  std::set<std::uint32_t> machine;
  std::set<std::uint32_t> later;

  explicit architectures(const std::string& library) {
    const std::string magic("\x50\xed\x55\xba\x01\x00", 6);
    for (std::size_t at = library.find(magic); at != std::string::npos; at = library.find(magic, at + 1)) {
      std::size_t entry = at + read<std::uint16_t>(library, at + 6);
      const std::size_t end = entry + read<std::uint64_t>(library, at + 8);
      while (entry < end) {
        const auto kind = read<std::uint16_t>(library, entry);
        (kind == 2 ? machine : later).insert(read<std::uint32_t>(library, entry + 28));
        entry += read<std::uint32_t>(library, entry + 4) + read<std::uint64_t>(library, entry + 8);
      }
    }
  }
};

/// The CUDA runtimes that this process has mapped.
std::set<std::string> mapped_runtimes() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/libcudart") != std::string::npos) found.insert(line.substr(line.find('/')));
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernels)

BOOST_AUTO_TEST_CASE(the_library_has_code_for_each_gpu_that_is_promised) {
  const architectures found(content_of(TROUPE_KERNELS));
  BOOST_TEST((found.machine == std::set<std::uint32_t>{80, 90, 100}));
  BOOST_TEST((found.later == std::set<std::uint32_t>{100}));
}

BOOST_AUTO_TEST_CASE(the_library_loads_where_there_is_no_gpu_and_uses_the_runtime_of_libtorch) {  // KL-2
  const auto& table = devices::load_functions(TROUPE_KERNELS);
  BOOST_TEST(table.version == devices::cuda::functions_version);
  BOOST_TEST(&devices::load_functions(devices::own_library) == &table);  // found by the run path of this program
  BOOST_TEST(mapped_runtimes().size() == 1u);
  // A runtime that was linked in would load the driver by this name.
  BOOST_TEST(content_of(TROUPE_KERNELS).find("libcuda.so.1") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(without_a_gpu_each_launch_says_why_it_fails) {
  if (devices::gpu_count() != 0) return;
  const auto& table = devices::load_functions(TROUPE_KERNELS);
  const auto pieces = std::make_unique<devices::cuda::packing_table>();
  unsigned char memory[64] = {};
  BOOST_TEST(pieces->add(memory, 16, 0));
  const devices::cuda::encoding encoding{nullptr, nullptr, nullptr, 256};
  const devices::cuda::decoding decoding{nullptr, nullptr, 256};
  int index = 0;
  const auto& sharing = table.sharing;
  devices::cuda::memory_handle handle{};
  std::uint64_t place = 0;
  void* made = nullptr;
  for (const int result : {sharing.share_memory(memory, &handle, &place), sharing.find_gpu(handle.gpu, &index),
                           sharing.open_memory(0, &handle, &made, &place), sharing.make_event(0, &made, handle.handle),
                           sharing.open_event(0, handle.handle, &made), table.pack(pieces.get(), memory, nullptr),
                           table.unpack(pieces.get(), memory, nullptr), table.to_bfloat16(nullptr, nullptr, 1, nullptr),
                           table.from_bfloat16(nullptr, nullptr, 1, nullptr), table.to_float16(nullptr, nullptr, 1, nullptr),
                           table.from_float16(nullptr, nullptr, 1, nullptr), table.encode_blocks(&encoding, nullptr),
                           table.decode_blocks(&decoding, nullptr)}) {
    BOOST_TEST(result != 0);
    BOOST_TEST(std::string(table.reason(result)).find("CUDA") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(nothing_to_do_needs_no_launch) {
  const auto& table = devices::load_functions(TROUPE_KERNELS);
  const auto pieces = std::make_unique<devices::cuda::packing_table>();
  const devices::cuda::encoding encoding{};
  const devices::cuda::decoding decoding{};
  BOOST_TEST(table.pack(pieces.get(), nullptr, nullptr) == 0);
  BOOST_TEST(table.unpack(pieces.get(), nullptr, nullptr) == 0);
  BOOST_TEST(table.to_float16(nullptr, nullptr, 0, nullptr) == 0);
  BOOST_TEST(table.encode_blocks(&encoding, nullptr) == 0);
  BOOST_TEST(table.decode_blocks(&decoding, nullptr) == 0);
}

BOOST_AUTO_TEST_CASE(a_grid_that_is_too_large_is_an_error_and_not_cut) {
  const auto& table = devices::load_functions(TROUPE_KERNELS);
  BOOST_TEST(table.to_float16(nullptr, nullptr, std::uint64_t{1} << 62, nullptr) == 9);  // cudaErrorInvalidConfiguration
}

BOOST_AUTO_TEST_SUITE_END()
