# SPDX-License-Identifier: BSD-3-Clause
add_room(calls
  calling_desk.cpp
  calls_made.cpp
  calls_taken.cpp
  call_worker.cpp
  call_workers.cpp
  outgoing_calls.cpp
  peer_rights.cpp
  serving_desk.cpp
  worker_desk.cpp)
