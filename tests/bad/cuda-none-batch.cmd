echo "$WORK"/firmware/hello.elf >"$tmp/list"; CUDA_VISIBLE_DEVICES= "$TAPEOUT" run "$CHIP" --batch "$tmp/list" --backend cuda
