# info names every state element of the machine.
"$TAPEOUT" info "$CHIP" >"$tmp/info" && for s in pc x ram code stale refill tohost; do grep -q "$s" "$tmp/info" || exit 1; done
