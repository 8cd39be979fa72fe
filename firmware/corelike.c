/* corelike.c: the four kinds of work of common embedded core benchmarks, written anew: a linked list that is searched, reversed and sorted;
 * small matrices; a state machine that reads numbers; and a CRC over every result, which decides what the next round does.
 * build: -march=rv32im_zba
 * needs: m zba */
#include "io.h"
#include <stddef.h>

enum { ROUNDS = 4, NODES = 60, SIDE = 8, TEXT = 160 };

static uint16_t crc;

static void crc_byte(uint8_t byte)
{
    for (int i = 0; i < 8; i++, byte >>= 1) {
        uint32_t bit = (byte ^ crc) & 1;
        crc >>= 1;
        if (bit) crc ^= 0xa001;
    }
}

static void crc_word(uint32_t w)
{
    for (int i = 0; i < 32; i += 8) crc_byte((uint8_t)(w >> i));
}

/* ---- lists ---- */
typedef struct Node {
    struct Node *next;
    int16_t key, index;
} Node;
static Node nodes[NODES];
typedef int Compare(const Node *a, const Node *b);

static int by_key(const Node *a, const Node *b) { return a->key - b->key; }
static int by_index(const Node *a, const Node *b) { return a->index - b->index; }

static Node *merge(Node *a, Node *b, Compare *compare)
{
    Node head, *tail = &head;
    while (a && b) {
        Node **first = compare(a, b) <= 0 ? &a : &b;
        tail->next = *first;
        tail = *first;
        *first = tail->next;
    }
    tail->next = a ? a : b;
    return head.next;
}

static Node *sort(Node *list, Compare *compare)
{
    if (!list || !list->next) return list;
    Node *slow = list, *fast = list->next;
    while (fast && fast->next) slow = slow->next, fast = fast->next->next;
    Node *half = slow->next;
    slow->next = NULL;
    return merge(sort(list, compare), sort(half, compare), compare);
}

static Node *reverse(Node *list)
{
    Node *done = NULL;
    while (list) {
        Node *next = list->next;
        list->next = done;
        done = list;
        list = next;
    }
    return done;
}

static const Node *find(const Node *list, int16_t key)
{
    while (list && list->key != key) list = list->next;
    return list;
}

static void list_work(uint32_t seed)
{
    for (int i = 0; i < NODES; i++) {
        nodes[i] = (Node){ i + 1 < NODES ? &nodes[i + 1] : NULL, (int16_t)(next_random(&seed) & 127), (int16_t)i };
    }
    Node *list = &nodes[0];
    uint32_t found = 0;
    for (int16_t key = 0; key < 24; key++) {
        const Node *n = find(list, (int16_t)(key * 5));
        if (n) found += (uint32_t)n->index + 1;
        else list = reverse(list);
    }
    list = sort(list, by_key);
    for (const Node *n = list; n; n = n->next) crc_word((uint32_t)n->key);
    list = sort(list, by_index);
    crc_word(found + (uint32_t)list->key);
}

/* ---- matrices ---- */
static int16_t a[SIDE][SIDE], b[SIDE][SIDE];
static int32_t c[SIDE][SIDE];

static int32_t clipped(int32_t v, int32_t limit) { return v > limit ? limit : v < -limit ? -limit : v; }

static void matrix_work(uint32_t seed)
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            a[i][j] = (int16_t)(next_random(&seed) >> 20);
            b[i][j] = (int16_t)((int32_t)next_random(&seed) >> 21);
        }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            int32_t sum = 0;
            for (int k = 0; k < SIDE; k++) sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
    for (int i = 0; i < SIDE; i++) {
        int32_t row = 0;
        for (int j = 0; j < SIDE; j++) row += clipped(c[i][j] >> 3, 30000) + (c[i][j] >> 5 & 15) * a[j][i];
        crc_word((uint32_t)row);
    }
}

/* ---- a state machine ---- */
typedef enum { START, SIGN, WHOLE, POINT, FRACTION, EXPONENT, EXPONENT_SIGN, POWER, WRONG, STATES } State;

static State step(State s, char ch)
{
    int digit = ch >= '0' && ch <= '9', sign = ch == '+' || ch == '-';
    switch (s) {
    case START: return digit ? WHOLE : sign ? SIGN : ch == '.' ? POINT : WRONG;
    case SIGN: return digit ? WHOLE : ch == '.' ? POINT : WRONG;
    case WHOLE: return digit ? WHOLE : ch == '.' ? FRACTION : ch == 'e' ? EXPONENT : WRONG;
    case POINT:
    case FRACTION: return digit ? FRACTION : ch == 'e' && s == FRACTION ? EXPONENT : WRONG;
    case EXPONENT: return digit ? POWER : sign ? EXPONENT_SIGN : WRONG;
    case EXPONENT_SIGN:
    case POWER: return digit ? POWER : WRONG;
    default: return WRONG;
    }
}

static void state_work(uint32_t seed)
{
    static const char letters[] = "0123456789012345.+-e,,,x";
    char text[TEXT];
    uint16_t ends[STATES] = { 0 }, changes = 0;
    for (int i = 0; i < TEXT; i++) text[i] = letters[next_random(&seed) % (sizeof letters - 1)];
    State s = START;
    for (int i = 0; i < TEXT; i++) {
        State to = text[i] == ',' ? START : step(s, text[i]);
        if (text[i] == ',') ends[s]++;
        changes += to != s;
        s = to;
    }
    for (int i = 0; i < STATES; i++) crc_word(ends[i]);
    crc_word(changes);
}

int main(void)
{
    static void (*const work[])(uint32_t) = { list_work, matrix_work, state_work };
    static const char *const names[] = { "list", "matrix", "state" };
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 3; i++) {
            work[i](0x3415u + round + (uint32_t)crc * 2);
            put_str(names[i]);
            put_str(" 0x");
            put_hex(crc, 4);
            put_char(i == 2 ? '\n' : ' ');
        }
    return 0;
}
