# Random programs, which store into their own code now and then.
"$BUILD/tests/lockstep" "$SPEC" --programs 400 --steps 500
