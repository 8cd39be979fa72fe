CUDA_VISIBLE_DEVICES= "$TAPEOUT" run "$CHIP" "$WORK"/firmware/hello.elf --backend cuda
