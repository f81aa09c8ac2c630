# SPDX-License-Identifier: BSD-3-Clause
add_room(nodes
  checkpoint_requests.cpp
  node_pages.cpp
  node_runtime.cpp
  node_services.cpp
  object_requests.cpp
  pass_workers.cpp
  gateway_actor.cpp
  news_desk.cpp
  status_desk.cpp
  status_survey.cpp
  system_config.cpp
  ties.cpp
  trace_requests.cpp)
