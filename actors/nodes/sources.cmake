# SPDX-License-Identifier: BSD-3-Clause
add_room(nodes
  builtin_functions.cpp
  checkpoint_functions.cpp
  company.cpp
  node_pages.cpp
  node_parts.cpp
  pass_workers.cpp
  gateway_actor.cpp
  news_desk.cpp
  status_desk.cpp
  status_survey.cpp
  ties.cpp
  trace_functions.cpp)
