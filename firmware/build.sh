#!/bin/sh
# build.sh OUTDIR [SOURCE...]: compiles each source (default: firmware/*.c) into OUTDIR/NAME.elf for a bare RV32I machine, or what the source asks for.
# A C program gets start.S and io.c; an assembly program stands alone. A line "build: FLAGS" in the source's first
# comment adds compiler or linker flags. Only what is older than its sources is built again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { echo "usage: build.sh OUTDIR [SOURCE...]" >&2; exit 2; }
out=$1; shift
[ $# -gt 0 ] || set -- "$here"/*.c
cc=${RISCV_CC:-riscv64-unknown-elf-gcc}
mkdir -p "$out"

flags_of() { sed -n '1,12s/^[^A-Za-z]*build: *\([^*]*\).*/\1/p' "$1"; }

fresh() { # ELF SOURCE: newer than the source, its folder's headers and everything here
    [ -f "$1" ] && [ -z "$(find "$here" "$2" "$(dirname "$2")"/*.h -newer "$1" -type f 2>/dev/null)" ]
}

# Compiles into a folder of its own, then links: the C library exists for plain names of machines only, so rv32im_zba links as rv32im.
build() { # ELF SOURCE FLAG...
    local elf=$1 source=$2 objects plain parts; shift 2
    objects=$(mktemp -d) || return 1
    parts=$objects/$(basename "${source%.*}").o
    source=$(cd "$(dirname "$source")" && pwd)/$(basename "$source")
    plain=$(printf '%s\n' "$@" | sed -n 's/^-march=\([^_]*\)_.*/-march=\1/p' | tail -n 1)
    case $source in
    *.c) set -- -O2 -Wall -Wextra "$here/start.S" "$here/io.c" "$here/stdio.c" "$@"
        parts="$objects/start.o $objects/io.o $parts $objects/stdio.a" ;; # an archive: linked where the program has no streams of its own
    *) set -- -nostdlib -march=rv32ima_zba_zbb_zicsr_zifencei "$@"; plain=-march=rv32ima ;;
    esac
    set -- -march=rv32i -mabi=ilp32 --specs=picolibc.specs "-I$here" "$@"
    # shellcheck disable=SC2046,SC2086  # flags and objects are words
    (cd "$objects" && "$cc" "$@" -c "$source") &&
        { [ ! -f "$objects/stdio.o" ] || "${cc%gcc}ar" rcs "$objects/stdio.a" "$objects/stdio.o"; } &&
        "$cc" $(printf '%s\n' "$@" | grep '^-') $plain -nostartfiles -T "$here/link.ld" -Wl,-z,max-page-size=4 -Wl,--start-group $parts -lc -Wl,--end-group -o "$elf.$$" &&
        mv "$elf.$$" "$elf" || { rm -rf "$objects" "$elf.$$"; return 1; }
    rm -rf "$objects"
}

for source; do
    [ -f "$source" ] || { echo "build.sh: $source: no such file" >&2; exit 1; }
    name=$(basename "$source"); name=${name%.*}
    elf=$out/$name.elf
    # shellcheck disable=SC2046  # flags are words
    [ "$name" = io ] || [ "$name" = stdio ] || fresh "$elf" "$source" || build "$elf" "$source" $(flags_of "$source") || exit 1
done
