# SPDX-License-Identifier: BSD-3-Clause
# A library of its own that includes no header of libtorch: libtorch brings another version of fmt than spdlog.
troupe_add_library(logging PCH none
  SOURCES
    logging/log_lines.cpp
    logging/node_log.cpp
  DEPENDS Threads::Threads)
target_link_libraries(troupe_logging PRIVATE spdlog::spdlog)
