"$TAPEOUT" run
