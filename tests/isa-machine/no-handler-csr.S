/* no-handler-csr.S: while mtvec is 0 an exception ends the run. */
#include "../isa/test.h"
START
    li sp, 0x80008000
    csrw mtvec, x0
    csrwi mepc, 8
    csrr a0, 0x180
PASS
