/* registers.S: thirty-two registers, all different; x0 stays 0. */
#include "test.h"
START
    li x2, 0x02020282
    li x3, 0x03030383
    li x4, 0x04040484
    li x5, 0x05050585
    li x6, 0x06060686
    li x7, 0x07070787
    li x8, 0x08080888
    li x9, 0x09090989
    li x10, 0x0a0a0a8a
    li x11, 0x0b0b0b8b
    li x12, 0x0c0c0c8c
    li x13, 0x0d0d0d8d
    li x14, 0x0e0e0e8e
    li x15, 0x0f0f0f8f
    li x16, 0x10101090
    li x17, 0x11111191
    li x18, 0x12121292
    li x19, 0x13131393
    li x20, 0x14141494
    li x21, 0x15151595
    li x22, 0x16161696
    li x23, 0x17171797
    li x24, 0x18181898
    li x25, 0x19191999
    li x26, 0x1a1a1a9a
    li x27, 0x1b1b1b9b
    li x28, 0x1c1c1c9c
    li x29, 0x1d1d1d9d
    li x30, 0x1e1e1e9e
    li x31, 0x1f1f1f9f
    /* All but x1 go to memory first: comparing needs registers. */
    la x1, data
    sw x2, 8(x1)
    sw x3, 12(x1)
    sw x4, 16(x1)
    sw x5, 20(x1)
    sw x6, 24(x1)
    sw x7, 28(x1)
    sw x8, 32(x1)
    sw x9, 36(x1)
    sw x10, 40(x1)
    sw x11, 44(x1)
    sw x12, 48(x1)
    sw x13, 52(x1)
    sw x14, 56(x1)
    sw x15, 60(x1)
    sw x16, 64(x1)
    sw x17, 68(x1)
    sw x18, 72(x1)
    sw x19, 76(x1)
    sw x20, 80(x1)
    sw x21, 84(x1)
    sw x22, 88(x1)
    sw x23, 92(x1)
    sw x24, 96(x1)
    sw x25, 100(x1)
    sw x26, 104(x1)
    sw x27, 108(x1)
    sw x28, 112(x1)
    sw x29, 116(x1)
    sw x30, 120(x1)
    sw x31, 124(x1)
    li x0, 123
    sw x0, 0(x1)
    mv s0, x1
    CASE(1, a0, 0, lw a0, 0(s0))
    CASE(2, a0, 0x02020282, lw a0, 8(s0))
    CASE(3, a0, 0x03030383, lw a0, 12(s0))
    CASE(4, a0, 0x04040484, lw a0, 16(s0))
    CASE(5, a0, 0x05050585, lw a0, 20(s0))
    CASE(6, a0, 0x06060686, lw a0, 24(s0))
    CASE(7, a0, 0x07070787, lw a0, 28(s0))
    CASE(8, a0, 0x08080888, lw a0, 32(s0))
    CASE(9, a0, 0x09090989, lw a0, 36(s0))
    CASE(10, a0, 0x0a0a0a8a, lw a0, 40(s0))
    CASE(11, a0, 0x0b0b0b8b, lw a0, 44(s0))
    CASE(12, a0, 0x0c0c0c8c, lw a0, 48(s0))
    CASE(13, a0, 0x0d0d0d8d, lw a0, 52(s0))
    CASE(14, a0, 0x0e0e0e8e, lw a0, 56(s0))
    CASE(15, a0, 0x0f0f0f8f, lw a0, 60(s0))
    CASE(16, a0, 0x10101090, lw a0, 64(s0))
    CASE(17, a0, 0x11111191, lw a0, 68(s0))
    CASE(18, a0, 0x12121292, lw a0, 72(s0))
    CASE(19, a0, 0x13131393, lw a0, 76(s0))
    CASE(20, a0, 0x14141494, lw a0, 80(s0))
    CASE(21, a0, 0x15151595, lw a0, 84(s0))
    CASE(22, a0, 0x16161696, lw a0, 88(s0))
    CASE(23, a0, 0x17171797, lw a0, 92(s0))
    CASE(24, a0, 0x18181898, lw a0, 96(s0))
    CASE(25, a0, 0x19191999, lw a0, 100(s0))
    CASE(26, a0, 0x1a1a1a9a, lw a0, 104(s0))
    CASE(27, a0, 0x1b1b1b9b, lw a0, 108(s0))
    CASE(28, a0, 0x1c1c1c9c, lw a0, 112(s0))
    CASE(29, a0, 0x1d1d1d9d, lw a0, 116(s0))
    CASE(30, a0, 0x1e1e1e9e, lw a0, 120(s0))
    CASE(31, a0, 0x1f1f1f9f, lw a0, 124(s0))
PASS
    .data
    .balign 4
data:
    .space 128
