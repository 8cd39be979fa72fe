# A run that has become long goes on by paths: every token as one by one, and a state saved then goes on as another does, one by one or by paths. What
# planes cannot hold, and what ends early, stays with the sparse back end.
run() { # CHIP BACKEND NAME FILE [OPTION...]: the trace in NAME.trace, what --stats says in NAME.stats
    local chip=$1 backend=$2 name=$3 file=$4; shift 4
    "$TAPEOUT" run "$chip" $file --backend "$backend" --trace "$tmp/$name.trace" --stats "$@" </dev/null >"$tmp/$name.out" 2>"$tmp/$name.stats"
}
count() { sed -n "s/^$1: //p" "$tmp/$2.stats"; }
steps=${SANITIZED:+22000} more=${SANITIZED:+3000} # with sanitizers a token takes ten times as long
steps=${steps:-60000} more=${more:-15000}
mkdir "$tmp/soak" && firmware/build.sh "$tmp/soak" tests/lockstep/soak.c || exit 1
for elf in "$WORK"/firmware/{matrix,sha256}.elf "$tmp/soak/soak.elf"; do
    run "$CHIP" sparse one "$elf" --max-steps $steps
    run "$CHIP" adaptive two "$elf" --max-steps $steps
    cmp "$tmp/one.trace" "$tmp/two.trace" && cmp "$tmp/one.out" "$tmp/two.out" || { echo "$elf"; exit 1; }
    grep -q no_paths "$tmp/two.stats" && { echo "$elf: no paths: $(cat "$tmp/two.stats")"; exit 1; }
done
[ "$(uname -m)" != x86_64 ] || [ "$(count paths two)" -gt 0 ] || { echo "no paths were made"; exit 1; }

# The state in the middle, then some more steps in every combination.
for b in sparse adaptive; do run "$CHIP" $b "$b" "$tmp/soak/soak.elf" --max-steps $steps --save-state "$tmp/$b.state"; done
for from in sparse adaptive; do
    for b in sparse adaptive; do
        run "$CHIP" $b "$from.$b" "" --load-state "$tmp/$from.state" --max-steps $more
        cmp "$tmp/sparse.sparse.trace" "$tmp/$from.$b.trace" || { echo "from $from by $b"; exit 1; }
    done
done
