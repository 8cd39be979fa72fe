# A run that reads stdin, cut in pieces by state files: each takes no more of its input than it uses, from a file or a pipe, so that the next reads on
# where it stopped.
"$TAPEOUT" build -q tests/machines/upper.ckt -o "$tmp/chip" || exit 1
pieces() { # BACKEND of the second piece
    "$TAPEOUT" run "$tmp/chip" --max-steps 7 --save-state "$tmp/a"; [ $? = 1 ] || return 2
    "$TAPEOUT" run "$tmp/chip" --load-state "$tmp/a" --backend "$1" --max-steps 1 --save-state "$tmp/b"; [ $? = 1 ] || return 3
    "$TAPEOUT" run "$tmp/chip" --load-state "$tmp/b" --backend "$1" --max-steps 5 --save-state "$tmp/a"; [ $? = 1 ] || return 4
    "$TAPEOUT" run "$tmp/chip" --load-state "$tmp/a"
}
"$TAPEOUT" run "$tmp/chip" <tests/machines/upper.in >"$tmp/whole"
status=$?
[ "$(wc -c <"$tmp/whole")" -gt 20 ] || exit 5
for backend in sparse dense; do
    pieces $backend <tests/machines/upper.in >"$tmp/o" 2>"$tmp/e"; [ $? = $status ] && cmp "$tmp/o" "$tmp/whole" || exit 6
    # shellcheck disable=SC2002  # a pipe is meant
    cat tests/machines/upper.in | { pieces $backend >"$tmp/o" 2>"$tmp/e"; [ $? = $status ]; } && cmp "$tmp/o" "$tmp/whole" || exit 7
done
