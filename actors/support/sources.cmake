# SPDX-License-Identifier: BSD-3-Clause
add_room(support
  deadline_clock.cpp
  durable_file.cpp
  host_lookup.cpp)
