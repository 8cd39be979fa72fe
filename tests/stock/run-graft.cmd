# A grafted folder runs: a prompt for the chip, its ids shifted, after text; the chip's own tokens come out, shifted. As a file of logits: a row a token that is fed.
"$TAPEOUT" build tests/hf/mix.ckt --vocab 4096 -q -o "$tmp/base.chip" && "$TAPEOUT" export "$tmp/base.chip" --hf "$tmp/base" >/dev/null || exit 3
"$TAPEOUT" build tests/machines/count.ckt -q --base "$tmp/base" -o "$tmp/count.chip" && "$TAPEOUT" graft -q "$tmp/base" "$tmp/count.chip" -o "$tmp/both" || exit 4
"$TAPEOUT" export "$tmp/count.chip" --hf "$tmp/alone" >/dev/null && "$TAPEOUT" prompt "$tmp/count.chip" >"$tmp/ids" || exit 5
first=$(sed -n 's/.*"first_token": \([0-9]*\).*/\1/p' "$tmp/both/config.json")
"$TAPEOUT" run "$tmp/alone" "$tmp/ids" | while read -r id; do echo $((id + first)); done >"$tmp/want"
{ echo "3 1 4 1 5 9 2 6"; "$TAPEOUT" prompt "$tmp/count.chip" --first "$first"; } >"$tmp/prompt"
"$TAPEOUT" run "$tmp/both" "$tmp/prompt" --logits "$tmp/logits" | cmp - "$tmp/want" && [ -s "$tmp/want" ] || exit 6
fed=$(($(wc -w <"$tmp/prompt") + $(wc -l <"$tmp/want") - 1)) vocab=$(sed -n 's/.*"vocab_size": \([0-9]*\).*/\1/p' "$tmp/both/config.json")
[ "$(stat -c %s "$tmp/logits")" = $((4 * fed * vocab)) ]
