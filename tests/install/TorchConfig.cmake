# SPDX-License-Identifier: BSD-3-Clause
# Stands for share/cmake/Torch/TorchConfig.cmake of a libtorch, which needs a CUDA toolkit. It makes the same targets: those of the
# wheel's Caffe2Targets.cmake, and those that the real package makes before it. It looks for its parts as the real package does:
# CMAKE_PREFIX_PATH comes before its own folder.
get_filename_component(torch_folder "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET protobuf::libprotobuf)
  add_library(dummy INTERFACE)
  add_library(protobuf::libprotobuf ALIAS dummy)
endif()
foreach(target IN ITEMS caffe2::mkl torch::cudart)
  if(NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED)
  endif()
endforeach()
find_package(Caffe2 REQUIRED PATHS "${CMAKE_CURRENT_LIST_DIR}/../Caffe2")
foreach(name IN ITEMS c10 torch)
  string(REPLACE "torch" "TORCH" variable "${name}_LIBRARY")
  find_library(${variable} ${name} PATHS "${torch_folder}/lib")
endforeach()
set_target_properties(torch_cpu_library PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
  "${torch_folder}/include;${torch_folder}/include/torch/csrc/api/include")
set(TORCH_LIBRARIES torch_cpu_library ${c10_LIBRARY}) # the library torch needs those of CUDA
set(Torch_FOUND TRUE)
