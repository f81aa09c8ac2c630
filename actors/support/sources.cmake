# SPDX-License-Identifier: BSD-3-Clause
add_room(support
  blocking_observer.cpp
  data_folder.cpp
  deadline_clock.cpp
  durable_file.cpp
  ends_by.cpp
  host_lookup.cpp
  machine_address.cpp
  open_folder.cpp
  service_end.cpp
  strict_json.cpp)
set(support_with_torch
  support/activity.cpp
  support/texts.cpp
  support/thread_modes.cpp)
