# SPDX-License-Identifier: BSD-3-Clause
add_room(passes
  burst.cpp
  burst_runner.cpp
  context_actor.cpp
  context_members.cpp
  context_record.cpp
  cpu_continuation.cpp
  lane_threads.cpp
  lane_worker.cpp
  graph_task_actor.cpp
  guest_pass.cpp
  open_contexts.cpp
  pass_outcome.cpp
  pass_start.cpp
  pass_terms.cpp
  released_contexts.cpp
  routing_desk.cpp)
