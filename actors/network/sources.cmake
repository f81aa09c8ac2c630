# SPDX-License-Identifier: BSD-3-Clause
add_room(network
  address_probe.cpp
  connection_channel.cpp
  credit_accounts.cpp
  dial_thread.cpp
  fragment_reader.cpp
  memory_channel.cpp
  memory_ring.cpp
  message_head.cpp
  network_threads.cpp
  send_credits.cpp
  shared_multiplexer.cpp
  system_config.cpp
  tcp_scribe.cpp
  watched_connections.cpp
  write_lanes.cpp
  write_queue.cpp)
