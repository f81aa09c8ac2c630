# SPDX-License-Identifier: BSD-3-Clause
add_room(transfers
  direct_memory.cpp
  memory_reader.cpp
  outgoing_pieces.cpp
  piece_window.cpp
  transfer_desk.cpp)
