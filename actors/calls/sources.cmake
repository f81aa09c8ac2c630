# SPDX-License-Identifier: BSD-3-Clause
add_room(calls
  call_worker.cpp
  call_workers.cpp
  outgoing_calls.cpp)
