# suite.sh: sourced by the cases beside it.
# build_test NAME FLAG...: NAME.S as a suite builds a test, to $tmp/NAME.elf.
build_test() {
    local name=$1; shift
    "${RISCV_CC:-riscv64-unknown-elf-gcc}" -march=rv32im_zicsr -mabi=ilp32 -nostdlib -nostartfiles -static -I tests/suite -T tests/suite/link.ld "$@" "tests/suite/$name.S" -o "$tmp/$name.elf" 2>"$tmp/ld" || { cat "$tmp/ld"; return 1; }
}

# The first CPU that has the extensions.
cpu_with() { # EXTENSION...
    "$BUILD/tests/golden" --cpus | while read -r row; do
        for e; do [[ " $row " = *" $e "* ]] || continue 2; done
        echo "${row%% *}"; break
    done
}

# The test's signature by the golden interpreter, by the chip (where the CPU exists) and by QEMU, against NAME.sig.
same_signature() { # CPU NAME
    local sig=tests/suite/$2.sig
    build_test "$2" && "$BUILD/tests/golden" --cpu "$1" --signature "$tmp/golden.sig" "$tmp/$2.elf" && diff $sig "$tmp/golden.sig" || return 1
    if [ -f "cpu-spec/$1.ckt" ] && [ "$1" != rv32im_machine ]; then # whose chip takes minutes to build
        "$TAPEOUT" build -q "cpu-spec/$1.ckt" -o "$tmp/chip" && "$TAPEOUT" run "$tmp/chip" "$tmp/$2.elf" --check --signature "$tmp/chip.sig" &&
            diff $sig "$tmp/chip.sig" || return 1
    fi
    command -v qemu-system-riscv32 >/dev/null || return 0
    build_test "$2" -DPRINT_SIGNATURE && timeout 60 qemu-system-riscv32 -M virt -bios none -nographic -cpu "$qemu_cpu" -kernel "$tmp/$2.elf" </dev/null | diff $sig -
}
