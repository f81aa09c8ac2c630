#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs what troupe is built from: Debian packages, and libtorch from its Python wheels into .venv (or uses the
# libtorch in TROUPE_TORCH_DIR). Installs only what is missing. TROUPE_TORCH=2.11.0 in the environment chooses a version out of
# cmake/libtorch.txt, which lies beside the others. With TROUPE_CUDA=ON, also installs nvcc from NVIDIA's wheels, for the CUDA
# kernels. With arguments, installs these Debian packages alone.
set -eu
cd "$(dirname "$0")/.."

# The Debian packages. Packages on one line serve one purpose. libboost-test-dev brings the headers of all of Boost: actors/metrics
# uses those of Asio and Beast, actors/passes those of its containers. gRPC is a peer in the benchmarks.
packages="
  clang clang-format clang-tidy codespell lld g++ cmake ninja-build ccache
  libcaf-dev libssl-dev
  libprotobuf-dev protobuf-compiler
  libcli11-dev nlohmann-json3-dev libspdlog-dev libxxhash-dev
  libboost-test-dev libbenchmark-dev libgrpc++-dev
  iproute2 iptables
  python3-venv python3-clang python3-yaml
  patchelf xz-utils
"
# These three packages are installed without the packages that they depend on: only Python and a GPU need those.
# libtorch_cpu.so is linked with the libraries of the two nvidia packages (libcudart, libcupti).
default=$(awk '/^[0-9]/ { print $1; exit }' cmake/libtorch.txt)
read -r torch runtime cupti nvcc <<END
$(awk -v wanted="${TROUPE_TORCH:-$default}" '$1 == wanted' cmake/libtorch.txt)
END
venv=.venv
[ "$torch" = "$default" ] || venv=.venv-$torch
wheels="torch==$torch nvidia-cuda-runtime==$runtime nvidia-cuda-cupti==$cupti"
stamp=$venv/libtorch-$torch
# The compiler of the CUDA that libtorch is built for. Debian 12 has CUDA 11.8, which knows neither that CUDA nor the newest GPUs.
# What is needed of the toolkit: nvcc, its headers (crt), its optimiser (nvvm), and the runtime with its headers.
cuda=${nvcc%.*}
cuda_wheels="nvidia-cuda-nvcc==$nvcc nvidia-cuda-crt==$nvcc nvidia-nvvm==$nvcc nvidia-cuda-runtime==$runtime"
cuda_stamp=$venv/cuda-$cuda

say() { echo "deps: $*"; }
fail() { echo "deps: $*" >&2; exit 1; }

install_packages() {
  installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null |
    sed -n 's/^installed //p' | tr '\n' ' ') "
  missing=
  for package in $packages; do
    case $installed in *" $package "*) ;; *) missing="$missing $package" ;; esac
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    echo "deps: Debian packages are missing; run this, then make again:" >&2
    echo "  sudo sh -c 'apt-get update && apt-get install -y$missing'" >&2
    exit 1
  fi
  say "installing Debian packages:$missing"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

install_libtorch() {
  if [ -n "${TROUPE_TORCH_DIR:-}" ]; then
    for file in include/ATen/ATen.h lib/libtorch_cpu.so; do
      [ -e "$TROUPE_TORCH_DIR/$file" ] || fail "TROUPE_TORCH_DIR is '$TROUPE_TORCH_DIR', but" \
        "$file is not there; expected the folder of an installed Python package torch"
    done
    return 0
  fi
  [ ! -e "$stamp" ] || return 0
  say "installing libtorch $torch into $venv (downloads 0.6 GB, takes 1.2 GB on disk, once)"
  python3 -m venv "$venv"
  rm -f "$venv"/libtorch-*
  "$venv/bin/python" -m pip install --disable-pip-version-check --no-compile --no-deps $wheels
  : >"$stamp"
}

install_cuda() {
  [ "${TROUPE_CUDA:-}" = ON ] && [ ! -e "$cuda_stamp" ] || return 0
  say "installing nvcc $cuda into $venv (downloads 95 MB, takes 250 MB on disk, once)"
  [ -e "$venv/bin/python" ] || python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --disable-pip-version-check --no-compile --no-deps $cuda_wheels
  : >"$cuda_stamp"
}

[ -n "$torch" ] || fail "TROUPE_TORCH is '$TROUPE_TORCH'; expected a version out of cmake/libtorch.txt:" \
  $(awk '/^[0-9]/ { print $1 }' cmake/libtorch.txt)
[ $# -eq 0 ] || packages=$*
command -v dpkg-query >/dev/null || fail "expected Debian or a relative of it (no dpkg here);" \
  "install by other means:" $packages
install_packages
[ $# -eq 0 ] || exit 0
install_libtorch
install_cuda
say "all there (libtorch: ${TROUPE_TORCH_DIR:-$venv})"
