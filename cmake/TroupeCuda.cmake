# SPDX-License-Identifier: BSD-3-Clause
# Chooses the compiler of the CUDA kernels (devices/cuda), or none. Sets troupe_cuda_built, and troupe_cudart: the CUDA runtime
# that libtorch loads. The kernels are linked with this one, because a process must have only one.
#   TROUPE_CUDA=AUTO  builds the kernels if there is a fitting nvcc
#   TROUPE_CUDA=ON    fails if there is none
#   TROUPE_CUDA=OFF   does not look
# The environment's TROUPE_CUDA counts at the first run of CMake.
set(troupe_cuda_default AUTO)
if(NOT "$ENV{TROUPE_CUDA}" STREQUAL "")
  set(troupe_cuda_default "$ENV{TROUPE_CUDA}")
endif()
set(TROUPE_CUDA ${troupe_cuda_default} CACHE STRING "Build the CUDA kernels: AUTO (if there is an nvcc), ON or OFF")
set_property(CACHE TROUPE_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT TROUPE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TROUPE_CUDA is '${TROUPE_CUDA}', expected AUTO, ON or OFF")
endif()

# Code for these GPUs (A100, H100, B200), and for newer ones what their driver compiles.
set(troupe_cuda_architectures 80-real 90-real 100)
set(troupe_cuda_oldest 12.8) # the first nvcc that knows architecture 100

# The CUDA runtime that libtorch's libraries are linked with: beside libtorch in a wheel of its own, or in libtorch's folder.
function(_troupe_find_cudart)
  file(GLOB found
    "${LibTorch_DIR}/../nvidia/cu*/lib/libcudart.so.[0-9]*"
    "${LibTorch_DIR}/../nvidia/cuda_runtime/lib/libcudart.so.[0-9]*"
    "${LibTorch_DIR}/lib/libcudart*.so.[0-9]*")
  if(found)
    list(GET found 0 found)
    get_filename_component(found "${found}" ABSOLUTE)
  endif()
  set(troupe_cudart "${found}" PARENT_SCOPE)
endfunction()

# Sets troupe_nvcc to the first nvcc that fits to libtorch, and troupe_nvcc_refused to what was found and why it does not fit. An nvcc
# that somebody has named is the only one that is looked at.
function(_troupe_find_nvcc cuda_major)
  set(named ON)
  if(CMAKE_CUDA_COMPILER)
    set(candidates "${CMAKE_CUDA_COMPILER}")
  elseif(NOT "$ENV{CUDACXX}" STREQUAL "")
    set(candidates "$ENV{CUDACXX}")
  else()
    set(named OFF)
    # The wheels come first: they are the pinned ones, and are there only because somebody has asked for them.
    file(GLOB candidates "${LibTorch_DIR}/../nvidia/cu*/bin/nvcc")
    file(GLOB in_venv "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu*/bin/nvcc")
    list(APPEND candidates ${in_venv})
    string(REPLACE ":" ";" folders "$ENV{PATH}")
    list(TRANSFORM folders APPEND "/nvcc" OUTPUT_VARIABLE in_path)
    list(APPEND candidates "$ENV{CUDA_PATH}/bin/nvcc" "$ENV{CUDA_HOME}/bin/nvcc" ${in_path})
  endif()
  set(refused)
  set(troupe_nvcc "" PARENT_SCOPE)
  foreach(nvcc IN LISTS candidates)
    if(NOT named AND NOT EXISTS "${nvcc}")
      continue()
    endif()
    set(output)
    execute_process(COMMAND "${nvcc}" --version OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
    if(NOT status EQUAL 0 OR NOT output MATCHES "release ([0-9]+)\\.([0-9]+)")
      list(APPEND refused "${nvcc} does not tell its version (${status})")
    elseif(NOT CMAKE_MATCH_1 EQUAL cuda_major OR "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}" VERSION_LESS troupe_cuda_oldest)
      list(APPEND refused "${nvcc} is of CUDA ${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
    else()
      get_filename_component(nvcc "${nvcc}" ABSOLUTE)
      set(troupe_nvcc "${nvcc}" PARENT_SCOPE)
      break()
    endif()
  endforeach()
  list(JOIN refused "; " refused)
  set(troupe_nvcc_refused "${refused}" PARENT_SCOPE)
endfunction()

set(troupe_cuda_built OFF)
set(troupe_cuda_reason)
if(TROUPE_CUDA STREQUAL OFF)
  set(troupe_cuda_reason "TROUPE_CUDA is OFF")
else()
  _troupe_find_cudart()
  if(NOT troupe_cudart)
    set(troupe_cuda_reason "the libtorch in '${LibTorch_DIR}' has no CUDA runtime (libcudart) beside it")
  else()
    string(REGEX REPLACE ".*\\.so\\.([0-9]+).*" "\\1" troupe_cuda_major "${troupe_cudart}")
    _troupe_find_nvcc(${troupe_cuda_major})
    if(troupe_nvcc)
      set(troupe_cuda_built ON)
    else()
      set(troupe_cuda_reason "expected an nvcc of CUDA ${troupe_cuda_major}, as libtorch, and of ${troupe_cuda_oldest} or newer; \
looked at CUDACXX, the wheels in .venv, CUDA_PATH, CUDA_HOME and PATH; found: ${troupe_nvcc_refused}")
      string(REGEX REPLACE "found: $" "found none" troupe_cuda_reason "${troupe_cuda_reason}")
    endif()
  endif()
  if(TROUPE_CUDA STREQUAL ON AND NOT troupe_cuda_built)
    message(FATAL_ERROR "TROUPE_CUDA is ON, but ${troupe_cuda_reason}. `TROUPE_CUDA=ON make deps` installs nvcc into .venv; or set \
CUDACXX to an nvcc")
  endif()
endif()

if(troupe_cuda_built)
  # nvcc's own programs look for the libraries of a toolkit in lib64, but the wheels have them in lib. Only CMake's trials of the
  # compiler link with these libraries.
  get_filename_component(troupe_cuda_root "${troupe_nvcc}" DIRECTORY)
  get_filename_component(troupe_cuda_root "${troupe_cuda_root}" DIRECTORY)
  if(EXISTS "${troupe_cuda_root}/lib/libcudart_static.a")
    set(ENV{NVCC_APPEND_FLAGS} "$ENV{NVCC_APPEND_FLAGS} -L${troupe_cuda_root}/lib")
  endif()
  set(CMAKE_CUDA_COMPILER "${troupe_nvcc}")
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
  set(CMAKE_CUDA_ARCHITECTURES ${troupe_cuda_architectures})
  enable_language(CUDA)
  list(APPEND CMAKE_BUILD_RPATH "${PROJECT_BINARY_DIR}/devices/cuda") # where programs find the kernels
  message(STATUS "CUDA kernels: built with ${troupe_nvcc} ${CMAKE_CUDA_COMPILER_VERSION}, run with ${troupe_cudart}")
else()
  message(STATUS "CUDA kernels: not built, because ${troupe_cuda_reason}")
endif()
