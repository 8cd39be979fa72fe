/* trap-illegal.S: words that are no instruction trap with the word in mtval. */
#include "trap.h"
TRAP_START
    ILLEGAL(1, 0x00000000)
    ILLEGAL(2, 0xffffffff)
    ILLEGAL(3, 0x00000001)          /* compressed */
    ILLEGAL(4, 0x0000000b)          /* custom-0 */
    ILLEGAL(5, 0x00002063)          /* branch with funct3 2 */
    ILLEGAL(6, 0x00003003)          /* ld */
    ILLEGAL(7, 0x00006003)          /* lwu */
    ILLEGAL(8, 0x00003023)          /* sd */
    ILLEGAL(9, 0x0000201b)          /* an instruction of RV64 */
    ILLEGAL(10, 0x02001013)         /* slli by 32 */
    ILLEGAL(11, 0x00100073 | 1 << 7)    /* ebreak with rd */
    ILLEGAL(12, 0x00000073 | 1 << 15)   /* ecall with rs1 */
    ILLEGAL(13, 0x30200073 | 1 << 7)    /* mret with rd */
    ILLEGAL(14, 0x10200073)         /* sret: no S */
    ILLEGAL(15, 0x00200073)         /* uret */
    ILLEGAL(16, 0x0200303b)         /* mulw and kin are RV64's */
    ILLEGAL(17, 0x00004073)         /* funct3 4 of SYSTEM */
    ILLEGAL(18, 0x0000200f)         /* funct3 2 of MISC-MEM */
    ILLEGAL(19, 0x00001067)         /* jalr with funct3 1 */
    ILLEGAL(20, 0x00002007)         /* flw: no F */
    ILLEGAL(21, 0xfff00073)
    TRAPS(22, 2, 0, j 78f; nop; 78: .word 0)
PASS
    HANDLER
