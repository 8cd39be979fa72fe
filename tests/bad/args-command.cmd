"$TAPEOUT" frobnicate
