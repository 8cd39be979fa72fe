#!/bin/sh
# build.sh OUTDIR [SOURCE...]: compiles each source (default: firmware/*.c) into OUTDIR/NAME.elf for a bare RV32I machine.
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

for source; do
    name=$(basename "$source"); name=${name%.*}
    elf=$out/$name.elf
    if [ "$name" = io ] || fresh "$elf" "$source"; then continue; fi
    case $source in
    *.c) set -- -O2 -Wall -Wextra "$here/start.S" "$here/io.c" ;;
    *) set -- -nostdlib -march=rv32ima_zba_zbb_zicsr_zifencei ;;
    esac
    # shellcheck disable=SC2046  # flags are words
    "$cc" -march=rv32i -mabi=ilp32 --specs=picolibc.specs -nostartfiles -T "$here/link.ld" -Wl,-z,max-page-size=4 \
        -I "$here" "$@" "$source" $(flags_of "$source") -o "$elf.$$" || { rm -f "$elf.$$"; exit 1; }
    mv "$elf.$$" "$elf"
done
