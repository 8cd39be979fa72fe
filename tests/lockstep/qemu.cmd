# 300 random programs whose registers and memory at the end are QEMU's, for each CPU of the golden interpreter (10,000: tests/README.md).
command -v qemu-system-riscv32 >/dev/null || exit 77
for cpu in rv32i rv32im rv32ima; do
    TMPDIR=$tmp "$BUILD/tests/versus" 300 --cpu $cpu >"$tmp/o" || { cat "$tmp/o"; exit 1; }
    n=$(sed -n 's/^instructions: //p' "$tmp/o") # all but ecall, ebreak and wfi
    case $cpu in rv32i) [ "$n" = 38 ] ;; rv32im) [ "$n" = 67 ] ;; *) [ "$n" = 86 ] ;; esac || { echo "$cpu: only $n instructions"; exit 1; }
done
