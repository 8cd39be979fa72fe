# start.S: first instruction to main, and main's result to the finisher: 0 passes, anything else fails with that code.
    .section .init, "ax"
    .globl _start, exit, _exit
_start:
    .option push
    .option norelax
    la    gp, __global_pointer$
    .option pop
    la    sp, __stack_top
    la    tp, __tls_base            # errno of the C library is thread-local
    la    t0, __bss_start
    la    t1, __bss_end
1:  bgeu  t0, t1, 2f
    sw    zero, 0(t0)
    addi  t0, t0, 4
    j     1b
2:  li    a0, 0                     # argc
    li    a1, 0                     # argv
    call  main
exit:
_exit:
    li    t0, 0x100000              # the finisher of QEMU's virt machine
    li    t1, 0x5555
    beqz  a0, 3f
    slli  a0, a0, 16
    li    t1, 0x3333
    or    t1, t1, a0
3:  sw    t1, 0(t0)
4:  j     4b                        # a finisher that takes its time
