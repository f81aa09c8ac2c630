# SPDX-License-Identifier: BSD-3-Clause
add_room(transfers
  direct_memory.cpp
  memory_reader.cpp
  transfers_ahead.cpp
  piece_window.cpp
  shipments.cpp
  transfer_desk.cpp)
