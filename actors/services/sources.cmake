# SPDX-License-Identifier: BSD-3-Clause
add_room(services
  node_services.cpp)
