"$TAPEOUT" run README.md "$WORK/firmware/hello.elf"
