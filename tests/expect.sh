#!/bin/sh
# expect.sh [NAME...]: writes tests/firmware/NAME.out, what each program of firmware/ prints under QEMU's virt machine:
# the same ELF, an implementation that is not ours. A program that does not exit with 0 there is an error.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
elves=$(mktemp -d)
trap 'rm -rf "$elves"' EXIT
"$here/../firmware/build.sh" "$elves"
[ $# -gt 0 ] || set -- $(cd "$elves" && ls ./*.elf | sed 's|^./||; s|\.elf$||')
for name; do
    in=$here/firmware/$name.in
    [ -f "$in" ] || in=/dev/null
    timeout 60 qemu-system-riscv32 -M virt -bios none -nographic -kernel "$elves/$name.elf" <"$in" >"$elves/out" || {
        echo "expect.sh: $name exits with $? under QEMU" >&2
        exit 1
    }
    mv "$elves/out" "$here/firmware/$name.out"
done
