#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# make.sh CONTENTS FILES TORCH NAME ARCHIVE: makes a relocatable archive with one folder, NAME.
#   CONTENTS  a file with lines "FOLDER FILE": programs and libraries of the build folder, and where they go
#   FILES     a folder whose files go into the archive as they are
#   TORCH     the libtorch of the build, which stays out of the archive with all that belongs to it
# The libraries that the programs need come into lib/, with their licences. The environment's XZ_LEVEL is -6 unless it is set.
set -eu
contents=$1 files=$2 torch=$(realpath "$3") name=$4 archive=$5
most_bytes=67108864 # 64 MiB
# Each system has these, and a program must not load those of another one. The rest is in the archive.
of_the_system='ld-linux*|libc.so.*|libm.so.*|libdl.so.*|librt.so.*|libpthread.so.*|libutil.so.*|libresolv.so.*|libgcc_s.so.*|libstdc++.so.*'
beside_torch=$(dirname "$torch")/nvidia
# Libraries of CUDA that Python's part of libtorch needs lie elsewhere on other machines, or are not on the build machine.
of_torch=$(ldd "$torch/lib/libtorch_python.so" 2>/dev/null | awk '{ print $1 }')

fail() { echo "bundle: $*" >&2; exit 1; }
for tool in patchelf strip xz; do
  command -v $tool >/dev/null || fail "$tool is missing; run: sudo apt-get install -y patchelf binutils xz-utils"
done

stage=$archive.folder
rm -rf "$stage" "$archive"
root=$stage/$name
mkdir -p "$root/bin" "$root/lib" "$root/libexec" "$root/tests" "$root/licenses"
cp -R "$files/." "$root"

# The libraries that a file needs, each as "name path".
needed_by() {
  LD_LIBRARY_PATH=$torch/lib ldd "$1" | while read -r library arrow path _; do
    [ "$arrow" = '=>' ] && ! echo "$of_torch" | grep -qx "$library" || continue
    [ "$path" != not ] || fail "$1 needs $library, which is not found"
    echo "$library $(realpath "$path")"
  done
}

# dpkg knows some files by /lib and others by /usr/lib.
add_licence() {
  package=$({ dpkg-query -S "$1" || dpkg-query -S "${1#/usr}"; } 2>/dev/null | head -n 1 | cut -d : -f 1) || package=
  [ -n "$package" ] || fail "expected a Debian package that has $1, for its licence; found none"
  cp "/usr/share/doc/$package/copyright" "$root/licenses/$package"
}

add_libraries_of() {
  needed_by "$1" | while read -r library path; do
    eval "case \$library in $of_the_system) continue ;; esac"
    case $path in "$torch"/* | "$beside_torch"/* | */libcudart.so.*) continue ;; esac
    [ ! -e "$root/lib/$library" ] || continue
    cp "$path" "$root/lib/$library"
    grep -q " $path\$" "$contents" || add_licence "$path"
  done
}

while read -r folder file; do
  [ -e "$file" ] || fail "$file is not built"
  cp "$file" "$root/$folder"
  add_libraries_of "$file"
done <"$contents"

# No name of a folder of the build machine stays in a run path.
for file in "$root"/lib/* "$root"/libexec/* "$root"/tests/*; do
  [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
  chmod u+w "$file"
  strip "$file"
  case $file in "$root"/lib/*) run_path=\$ORIGIN ;; *) run_path=\$ORIGIN/../lib ;; esac
  patchelf --set-rpath "$run_path" "$file"
done

for program in "$root"/libexec/*; do
  program=$(basename "$program")
  [ "$program" != with_libtorch ] || continue
  cat >"$root/bin/$program" <<END
#!/bin/sh
# Runs $program with the libtorch of this machine.
root=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
export TROUPE_STARTED_AS="\$0" # for the commands that the program prints
exec "\$root/libexec/with_libtorch" "\$root/libexec/$program" "\$@"
END
  chmod 755 "$root/bin/$program"
done

tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$name" | xz -T0 "${XZ_LEVEL:--6}" >"$archive.new"
bytes=$(wc -c <"$archive.new")
[ "$bytes" -le $most_bytes ] || fail "the archive has $bytes bytes, more than $most_bytes; leave tests out in packaging/bundle/CMakeLists.txt"
mv "$archive.new" "$archive"
echo "bundle: $archive ($(((bytes + 524288) / 1048576)) MiB, unpacked $(du -sm "$root" | cut -f 1) MiB)"
rm -rf "$stage"
