# The same with machine mode.
. tests/suite/suite.sh
same_signature "$(cpu_with m machine)" arch-trap
