"""llama.cpp, as the package cyllama from PyPI carries it: GGUF exports in an engine that shares nothing with torch. Run by parity.py.

    llama_cpp.py FILE.gguf PROMPT     boots the prompt's program and prints what it says (a file from `tapeout prompt`)

The package's own logits accessor is broken in 0.2.18 for all but the last token (it asks the model for a vocabulary that it has not), so tokens are
taken through the engine's greedy sampler, which is what a user does.
"""
import os
import re
import sys

import cyllama.llama.llama_cpp as engine


class Engine:
    def __init__(self, file):
        engine.llama_backend_init()
        engine.disable_logging()
        self.model = engine.LlamaModel(file, engine.LlamaModelParams())
        self.vocab = self.model.get_vocab()
        self.greedy = engine.LlamaSampler(engine.LlamaSamplerChainParams())
        self.greedy.add_greedy()
        self.context, self.at = None, 0

    def start(self, tokens, batch=512):
        """A new context for so many tokens."""
        p = engine.LlamaContextParams()
        p.n_ctx, p.n_batch, p.n_ubatch = tokens + 256, batch, min(batch, 512)
        p.n_threads = p.n_threads_batch = int(os.environ.get("OMP_NUM_THREADS", "1"))
        if self.context:
            self.context.close()
        self.context, self.at = engine.LlamaContext(self.model, p), 0

    def feed(self, tokens):
        """One decode of the tokens with the cache kept: the greedy next token after each."""
        batch = engine.LlamaBatch(n_tokens=len(tokens), embd=0, n_seq_max=1)
        for i, t in enumerate(tokens):
            batch.add(t, self.at + i, [0], True)
        self.context.decode(batch)
        self.at += len(tokens)
        return [self.greedy.sample(self.context, i) for i in range(len(tokens))]

    def in_pieces(self, tokens, size):
        self.start(len(tokens), size)
        said = []
        for at in range(0, len(tokens), size):
            said += self.feed(tokens[at : at + size])
        return said

    def generate(self, prompt, stop, most):
        """Greedy decoding until a token of `stop`, which is the last one."""
        self.start(len(prompt) + most)
        for at in range(0, len(prompt), 512):
            said = self.feed(prompt[at : at + 512])[-1:]
        while said[-1] not in stop and len(said) < most:
            said += self.feed(said[-1:])
        return said

    def text(self, tokens):
        return "".join(self.vocab.token_to_piece(t, 0, True) for t in tokens)


def console(engine_, prompt, most=100_000):
    """What a program prints before its `stop` token."""
    stop = {t for t in range(engine_.vocab.n_vocab) if engine_.text([t]).startswith("<stop")}
    said = engine_.text(engine_.generate(prompt, stop, most))
    return bytes(int(byte, 16) for byte in re.findall(r"<uart(?:\.more)? 0x(..)>", said))


if __name__ == "__main__":
    sys.stdout.buffer.write(console(Engine(sys.argv[1]), [int(line) for line in open(sys.argv[2])]))
