# Random programs, which store into their own code now and then.
"$BUILD/tests/lockstep" "$SPEC" --programs 40 --seed 1
