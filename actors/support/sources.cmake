# SPDX-License-Identifier: BSD-3-Clause
add_room(support
  checksum.cpp
  deadline_clock.cpp
  durable_file.cpp
  host_lookup.cpp
  machine_address.cpp)
