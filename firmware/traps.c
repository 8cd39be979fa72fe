/* traps.c: machine mode at work: a handler in C that counts and repairs what traps, a timer that ticks while the program computes, and
 * a software interrupt that the program sends to itself.
 * build: -march=rv32im_zicsr
 * needs: m machine clint */
#include "io.h"

#define MSIP (*(volatile uint32_t *)0x02000000u)
#define MTIMECMP_LOW (*(volatile uint32_t *)0x02004000u)
#define MTIMECMP_HIGH (*(volatile uint32_t *)0x02004004u)
#define MTIME_LOW (*(volatile uint32_t *)0x0200bff8u)
#define READ(csr) ({ uint32_t v; __asm__ volatile("csrr %0, " #csr : "=r"(v)); v; })
#define WRITE(csr, v) __asm__ volatile("csrw " #csr ", %0" : : "r"(v) : "memory")

enum { TICKS = 5, PERIOD = 2000, SOFTWARE = 3, TIMER = 7 };
enum { MIE = 8, CAUSES = 16 };
static const uint32_t INTERRUPT = 0x80000000;

static volatile uint32_t exceptions[CAUSES], interrupts[CAUSES];
static uint32_t last_value;

static void next_tick(uint32_t from_now)
{
    MTIMECMP_LOW = MTIME_LOW + from_now;
    MTIMECMP_HIGH = 0;
}

static void no_tick(void) { MTIMECMP_HIGH = 0xffffffff; }

static __attribute__((interrupt("machine"), aligned(4))) void handler(void)
{
    uint32_t cause = READ(mcause), code = cause & (CAUSES - 1);
    if (!(cause & INTERRUPT)) {
        exceptions[code]++;
        last_value = READ(mtval);
        WRITE(mepc, READ(mepc) + 4);
        return;
    }
    if (code == SOFTWARE) MSIP = 0;
    if (code == TIMER && interrupts[TIMER] + 1 < TICKS) next_tick(PERIOD);
    else if (code == TIMER) no_tick();
    interrupts[code]++;
}

/* A step of something that an interrupt at the wrong time would disturb. */
static uint32_t collatz(uint32_t n)
{
    uint32_t steps = 0;
    for (; n != 1; steps++) n = n & 1 ? 3 * n + 1 : n / 2;
    return steps;
}

int main(void)
{
    WRITE(mtvec, (uint32_t)handler);
    __asm__ volatile(".word 0");
    __asm__ volatile(".word 0x0000000b"); /* an encoding that is left to others */
    put_str("illegal: "), put_hex(last_value, 8), put_char('\n');
    __asm__ volatile("ecall");
    uint32_t kept = 77;
    __asm__ volatile("lw %0, 0(%1)" : "+r"(kept) : "r"(0xf0000000u));
    put_value("kept", kept);
    put_str("address: "), put_hex(last_value, 8), put_char('\n');
    __asm__ volatile("sw %0, 4(%1)" : : "r"(kept), "r"(0xf0000000u) : "memory");
    __asm__ volatile("csrr %0, 0x7ff" : "=r"(kept));

    no_tick();
    WRITE(mie, 1u << SOFTWARE | 1u << TIMER);
    __asm__ volatile("csrsi mstatus, 8");
    MSIP = 1;
    while (!interrupts[SOFTWARE]) continue;
    next_tick(PERIOD);
    uint32_t best = 0, n = 1, longest = 0;
    do { /* at least as long as the timer ticks, but with the same result */
        if (n < 300) {
            uint32_t steps = collatz(n);
            if (steps > best) best = steps, longest = n;
            n++;
        }
    } while (n < 300 || interrupts[TIMER] < TICKS);
    __asm__ volatile("csrci mstatus, 8");
    put_value("longest", longest);
    put_value("steps", best);
    for (uint32_t i = 0; i < CAUSES; i++)
        if (exceptions[i]) put_str("exception "), put_dec(i), put_str(": "), put_dec(exceptions[i]), put_char('\n');
    put_value("software interrupts", interrupts[SOFTWARE]);
    put_value("ticks", interrupts[TIMER]);
    return 0;
}
