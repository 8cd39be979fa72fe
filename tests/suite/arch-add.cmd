# An architecture test in the environment that RISC-V's public suites expect: entry, tohost, signature.
. tests/suite/suite.sh
same_signature rv32i arch-add
