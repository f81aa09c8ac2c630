// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <fstream>
#include <string>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(boundaries)

BOOST_AUTO_TEST_CASE(the_engine_includes_neither_caf_nor_a_room_above_it) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TROUPE_SOURCE_DIR "/engine")) {
    const auto kind = entry.path().extension();
    if (kind != ".cpp" && kind != ".hpp") continue;
    ++files;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      for (const char* other : {"<caf/", "\"caf/", "<troupe/actors/", "<troupe/devices/", "<torch/torch.h>"}) {
        const bool found = line.rfind("#include", 0) == 0 && line.find(other) != std::string::npos;
        BOOST_TEST(!found, entry.path() << ": " << line);
      }
    }
  }
  BOOST_TEST(files > 20u);
}

BOOST_AUTO_TEST_SUITE_END()
