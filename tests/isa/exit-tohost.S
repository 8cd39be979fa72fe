/* exit-tohost.S: Spike's way to stop: an odd word stored to the symbol tohost; its upper bits are the status. */
    .section .init, "ax"
    .globl _start
_start:
    la t0, tohost
    li t1, 6
    sw t1, 0(t0)                    # even: not yet
    li t1, 9 << 1 | 1
    sh t1, 0(t0)                    # not a word: not yet
    sw t1, 0(t0)
    ebreak
    .data
    .balign 8
    .globl tohost
tohost:
    .dword 0
