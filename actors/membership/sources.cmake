# SPDX-License-Identifier: BSD-3-Clause
add_room(membership
  admission.cpp
  dialer.cpp
  greetings.cpp
  heard_members.cpp
  known_members.cpp
  member_desk.cpp
  member_table.cpp
  membership.cpp
  neighbours.cpp
  node_connection.cpp
  peer_directory.cpp
  peer_traffic.cpp
  roster.cpp
  route.cpp
  seeds.cpp)
