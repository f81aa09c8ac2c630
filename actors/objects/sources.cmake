# SPDX-License-Identifier: BSD-3-Clause
add_room(objects
  checkpoint.cpp
  checkpoint_manifest.cpp
  checkpoint_part.cpp
  loaded_script.cpp
  local_optimizer.cpp
  module_selection.cpp
  object_store.cpp
  optimizer_kind.cpp
  random_state.cpp
  safetensors.cpp)
