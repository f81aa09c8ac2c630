# SPDX-License-Identifier: BSD-3-Clause
add_room(gate
  connection_gate.cpp
  credentials.cpp
  introduced_nodes.cpp
  known_peers.cpp
  node_ids.cpp
  reception.cpp
  socket_user.cpp
  tls_session.cpp)
