/* firmware.c: any bytes as firmware: refused with a message, or segments that can be read.
 * fuzz: -max_len=4096 */
#include "../../runtime/runtime.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *err = NULL;
    Firmware *f = firmware_parse(data, size, "fuzz.elf", &err);
    if (!f != (err != NULL)) abort();
    free(err);
    if (!f) return 0;
    uint8_t bytes[64];
    uint64_t value;
    for (uint32_t i = 0; i < f->nsegments; i++) f->image.read(&f->image, f->segment[i].addr, bytes, sizeof bytes);
    f->image.symbol(&f->image, "tohost", &value);
    firmware_close(f);
    return 0;
}
