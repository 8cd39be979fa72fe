# The CPUs on other shapes than `native`, proved and compared with the netlist: a little of what tests/shapes.sh does.
STEPS=400 SHAPES="rv32i:qwen3.5-4b:bf16 rv32im:native64:f32" tests/shapes.sh hello sort muldiv || exit 1
