# SPDX-License-Identifier: BSD-3-Clause
add_room(services
  burst_threads.cpp
  courier.cpp
  departures.cpp
  device_maps.cpp
  garbage.cpp
  node_identity.cpp
  node_network.cpp
  outbox.cpp
  running_work.cpp)
