# SPDX-License-Identifier: BSD-3-Clause
add_room(services
  burst_threads.cpp
  courier.cpp
  departures.cpp
  device_maps.cpp
  node_services.cpp)
