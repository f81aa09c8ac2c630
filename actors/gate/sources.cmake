# SPDX-License-Identifier: BSD-3-Clause
add_room(gate
  connection_gate.cpp
  socket_user.cpp)
