# What `targets` says of exactness is what the proof says, and every target's chip exports as its family.
"$TAPEOUT" targets | tail -n +2 | while read -r name family dtype hidden mlp kh vh dk dv ram rest; do
    for d in f32 bf16; do
        case " ${rest%%  *} " in *" $d "*) want=0 ;; *) want=1 ;; esac
        "$TAPEOUT" build tests/machines/count.ckt -t "$name" --dtype $d -q -o "$tmp/x.chip" 2>"$tmp/why"; got=$?
        [ $got = $want ] || { echo "$name $d: $got, not $want" >&2; exit 3; }
        [ $want = 0 ] || grep -q "not proved exact" "$tmp/why" || exit 4
    done
    [ "$hidden" = any ] || continue # the others are of a real model's size
    "$TAPEOUT" build tests/machines/count.ckt -t "$name" -q -o "$tmp/x.chip" && "$TAPEOUT" export "$tmp/x.chip" --hf "$tmp/hf" || exit 5
    grep -q "\"model_type\": \"$family" "$tmp/hf/config.json" || exit 6
    rm -r "$tmp/hf"
done
