# The same with machine mode.
. tests/suite/suite.sh
same_signature rv32im arch-trap
