# SPDX-License-Identifier: BSD-3-Clause
# Finds libtorch in an unpacked Python wheel: LibTorch::torch_cpu, LibTorch::c10 and, if the wheel has it,
# LibTorch::c10_cuda. The folder is TROUPE_TORCH_DIR (variable, then environment), otherwise that of the package Torch
# (find_package(Torch) came first, Torch_DIR is set, or Torch_ROOT or CMAKE_PREFIX_PATH leads to it), otherwise the project's .venv, or
# .venv-2.11.0 if TROUPE_TORCH is that version.
# The wheel's own find_package(Torch) is not used, because that package needs a whole CUDA toolkit. A project that finds both
# packages gets one libtorch. LibTorch_PROTOBUF_FOLDERS are the folders of libtorchs where an old protobuf may be found.
set(libtorch_paths)
set(libtorch_of_package)
# Parts of the package Torch that find_package(Torch) looks for, and their paths in its folder.
set(libtorch_parts TORCH_LIBRARY c10_LIBRARY C10_CUDA_LIBRARY CAFFE2_NVRTC_LIBRARY Caffe2_DIR)
set(libtorch_part_paths lib/libtorch.so lib/libc10.so lib/libc10_cuda.so lib/libcaffe2_nvrtc.so share/cmake/Caffe2)
# find_package(Torch) sets Torch_DIR. A value that an earlier run of this file has set says nothing about what the user wants.
if(Torch_DIR AND (TARGET torch OR NOT Torch_DIR STREQUAL libtorch_package_set))
  get_filename_component(libtorch_of_package "${Torch_DIR}/../../.." ABSOLUTE)
endif()
set(libtorch_packages) # where find_package(Torch) would look
string(REPLACE ":" ";" libtorch_prefixes "${Torch_ROOT};$ENV{Torch_ROOT};${CMAKE_PREFIX_PATH};$ENV{CMAKE_PREFIX_PATH}")
foreach(prefix IN LISTS libtorch_prefixes)
  string(REGEX REPLACE "/share/cmake/?$" "" prefix "${prefix}") # torch.utils.cmake_prefix_path ends so
  if(EXISTS "${prefix}/share/cmake/Torch/TorchConfig.cmake")
    get_filename_component(prefix "${prefix}" ABSOLUTE) # without a slash at the end
    list(APPEND libtorch_packages "${prefix}")
  endif()
endforeach()
if(TROUPE_TORCH_DIR)
  list(APPEND libtorch_paths "${TROUPE_TORCH_DIR}")
elseif(DEFINED ENV{TROUPE_TORCH_DIR} AND NOT "$ENV{TROUPE_TORCH_DIR}" STREQUAL "")
  list(APPEND libtorch_paths "$ENV{TROUPE_TORCH_DIR}")
elseif(libtorch_of_package)
  list(APPEND libtorch_paths "${libtorch_of_package}")
elseif(TROUPE_TORCH_DIR_BUILT) # set by the installed package: the folder with which troupe was built
  list(APPEND libtorch_paths ${libtorch_packages} "${TROUPE_TORCH_DIR_BUILT}")
else()
  set(libtorch_venv .venv)
  file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/libtorch.txt" libtorch_rows REGEX "^[0-9]")
  if(TROUPE_TORCH AND NOT libtorch_rows MATCHES "^${TROUPE_TORCH} ")
    set(libtorch_venv .venv-${TROUPE_TORCH})
  endif()
  set(libtorch_paths "${PROJECT_SOURCE_DIR}/${libtorch_venv}/lib/python3*/site-packages/torch")
  file(GLOB libtorch_found "${libtorch_paths}")
  if(libtorch_found)
    set(libtorch_paths "${libtorch_found}")
  endif()
endif()
if(libtorch_of_package)
  file(REAL_PATH "${libtorch_paths}" libtorch_here)
  file(REAL_PATH "${libtorch_of_package}" libtorch_there)
  if(NOT libtorch_here STREQUAL libtorch_there)
    message(FATAL_ERROR "expected one libtorch, got two: TROUPE_TORCH_DIR is '${libtorch_here}', and the package Torch is that of \
'${libtorch_there}'. Name the same folder in both, or unset TROUPE_TORCH_DIR")
  endif()
  # The package Torch takes its parts from CMAKE_PREFIX_PATH before its own folder, and from the cache before both.
  foreach(part IN LISTS libtorch_parts ITEMS kineto_LIBRARY TORCH_INSTALL_PREFIX)
    string(REGEX REPLACE "/+(lib/lib[^/]*[.](so|a)|share/cmake/Caffe2)$" "" libtorch_here "${${part}}")
    file(REAL_PATH "${libtorch_here}" libtorch_here)
    if(${part} AND NOT libtorch_here STREQUAL libtorch_there)
      message(FATAL_ERROR "expected one libtorch, got two: the package Torch is that of '${libtorch_there}', and its ${part} is \
'${${part}}'. Name one libtorch in CMAKE_PREFIX_PATH, Torch_ROOT and Torch_DIR, and configure in a new build folder")
    endif()
  endforeach()
endif()

find_path(libtorch_root NAMES include/ATen/ATen.h PATHS ${libtorch_paths} NO_DEFAULT_PATH NO_CACHE)
if(libtorch_root)
  get_filename_component(libtorch_root "${libtorch_root}" ABSOLUTE) # without a slash at the end
  find_library(libtorch_cpu_library torch_cpu PATHS "${libtorch_root}/lib" NO_DEFAULT_PATH NO_CACHE)
  find_library(libtorch_c10_library c10 PATHS "${libtorch_root}/lib" NO_DEFAULT_PATH NO_CACHE)
  find_library(libtorch_c10_cuda_library c10_cuda PATHS "${libtorch_root}/lib"
    NO_DEFAULT_PATH NO_CACHE)
  if(EXISTS "${libtorch_root}/include/torch/headeronly/version.h")
    file(STRINGS "${libtorch_root}/include/torch/headeronly/version.h" libtorch_version_lines
      REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH)")
    string(REGEX MATCHALL "[0-9]+" libtorch_version_numbers "${libtorch_version_lines}")
    list(JOIN libtorch_version_numbers "." LibTorch_VERSION)
  endif()
  # The installed package names the version with which troupe was built. Another minor version has other symbols.
  string(REGEX MATCH "^[0-9]+[.][0-9]+" libtorch_minor "${LibTorch_VERSION}")
  if(TROUPE_TORCH_VERSION_BUILT AND NOT TROUPE_TORCH_VERSION_BUILT MATCHES "^${libtorch_minor}[.]")
    message(FATAL_ERROR "expected libtorch ${TROUPE_TORCH_VERSION_BUILT}, with which troupe was built ('${TROUPE_TORCH_DIR_BUILT}'); \
got libtorch ${LibTorch_VERSION} in '${libtorch_root}'. Name a libtorch of that version, or build troupe with this one")
  endif()
endif()

include(FindPackageHandleStandardArgs)
list(JOIN libtorch_paths "', '" libtorch_looked_in)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS libtorch_root libtorch_cpu_library libtorch_c10_library
  VERSION_VAR LibTorch_VERSION
  HANDLE_VERSION_RANGE
  REASON_FAILURE_MESSAGE "looked in '${libtorch_looked_in}' for include/ATen/ATen.h and \
lib/libtorch_cpu.so. Run 'make deps', or set TROUPE_TORCH_DIR to the folder of the Python package \
torch")

set(LibTorch_PROTOBUF_FOLDERS)
foreach(folder IN LISTS libtorch_root libtorch_packages)
  # A prefix that has libprotobuf too is one of many packages, such as that of conda.
  if(folder STREQUAL libtorch_root OR (EXISTS "${folder}/lib/libtorch_cpu.so" AND NOT EXISTS "${folder}/lib/libprotobuf.so"))
    list(APPEND LibTorch_PROTOBUF_FOLDERS "${folder}/include" "${folder}/lib" "${folder}/bin")
  endif()
endforeach()

if(LibTorch_FOUND AND NOT TARGET LibTorch::c10)
  # libtorch's include folder also has an old google/protobuf. A folder with nothing but the system's google/protobuf
  # comes first, so that the two are never mixed.
  list(APPEND CMAKE_IGNORE_PATH ${LibTorch_PROTOBUF_FOLDERS})
  find_path(LibTorch_PROTOBUF_INCLUDE_DIR google/protobuf/message.h)
  list(REMOVE_ITEM CMAKE_IGNORE_PATH ${LibTorch_PROTOBUF_FOLDERS})
  mark_as_advanced(LibTorch_PROTOBUF_INCLUDE_DIR)
  set(libtorch_includes "${libtorch_root}/include" "${libtorch_root}/include/torch/csrc/api/include")
  if(LibTorch_PROTOBUF_INCLUDE_DIR)
    set(libtorch_shadow "${CMAKE_BINARY_DIR}/protobuf_first")
    file(MAKE_DIRECTORY "${libtorch_shadow}")
    file(CREATE_LINK "${LibTorch_PROTOBUF_INCLUDE_DIR}/google" "${libtorch_shadow}/google" SYMBOLIC)
    list(PREPEND libtorch_includes "${libtorch_shadow}")
  endif()

  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES
    IMPORTED_LOCATION "${libtorch_c10_library}"
    INTERFACE_INCLUDE_DIRECTORIES "${libtorch_includes}"
    INTERFACE_COMPILE_DEFINITIONS _GLIBCXX_USE_CXX11_ABI=1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 18)
    # From version 18 on, Clang gives templates such as TensorBase::const_data_ptr<double> other symbols than g++, which makes the wheel.
    set_target_properties(LibTorch::c10 PROPERTIES INTERFACE_COMPILE_OPTIONS -fclang-abi-compat=17)
  endif()
  add_library(LibTorch::torch_cpu SHARED IMPORTED)
  set_target_properties(LibTorch::torch_cpu PROPERTIES
    IMPORTED_LOCATION "${libtorch_cpu_library}"
    INTERFACE_LINK_LIBRARIES LibTorch::c10)
  if(libtorch_c10_cuda_library)
    add_library(LibTorch::c10_cuda SHARED IMPORTED)
    set_target_properties(LibTorch::c10_cuda PROPERTIES
      IMPORTED_LOCATION "${libtorch_c10_cuda_library}"
      INTERFACE_LINK_LIBRARIES LibTorch::c10)
  endif()
endif()
set(LibTorch_DIR "${libtorch_root}")
# A later find_package(Torch) takes the same libtorch.
if(LibTorch_FOUND AND EXISTS "${libtorch_root}/share/cmake/Torch/TorchConfig.cmake")
  foreach(part path IN ZIP_LISTS libtorch_parts libtorch_part_paths)
    if(EXISTS "${libtorch_root}/${path}")
      set(${part} "${libtorch_root}/${path}" CACHE PATH "Part of the package Torch" FORCE)
    endif()
  endforeach()
  if(DEFINED ENV{TORCH_INSTALL_PREFIX})
    set(ENV{TORCH_INSTALL_PREFIX} "${libtorch_root}")
  endif()
  if(NOT libtorch_of_package)
    set(libtorch_package_set "${libtorch_root}/share/cmake/Torch" CACHE INTERNAL "Torch_DIR as troupe has set it")
    set(Torch_DIR "${libtorch_package_set}" CACHE PATH "Folder with TorchConfig.cmake" FORCE)
  endif()
endif()
