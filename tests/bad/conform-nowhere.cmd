"$TAPEOUT" conform --out "$tmp/no/kit"
