# The spec of the larger CPU tests itself.
"$TAPEOUT" test cpu-spec/rv32im.ckt
