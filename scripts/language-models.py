#!/usr/bin/env python3
"""Writes small language models with random weights, and compares llama.cpp's texts on a GPU and on the CPU.

usage: scripts/language-models.py FOLDER [MODEL-TYPE...]

Without names, such as qwen3-Q8_0, all models in all types. Needs `llama-server` and `llama-quantize`, the HIP back end, and
the packages gguf and numpy of PyPI.

Both back ends choose the likeliest token each time. Where they choose two different ones, the GPU goes on with the CPU's,
so all tokens are compared. A difference is a near tie if each back end takes the other's token to be nearly as likely as
its own. The table has, for each model, the numbers of equal tokens, near ties and other differences, the largest
difference of a log-probability of the ten likeliest tokens, the tokens per second of CPU time that the GPU's decoding
takes, and a verdict: no other differences, and log-probabilities that are close. The status is 1 if one is FAIL.
"""

import itertools
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import gguf
import numpy

# name: architecture, layers, experts (0: one feed-forward network), normalised queries and keys
MODELS = {"llama": ("llama", 8, 0, False), "qwen3": ("qwen3", 8, 0, True), "mixtral": ("llama", 2, 4, False)}
WIDTH, HEADS, KEY_HEADS, HEAD, FEED_FORWARD, CONTEXT = 256, 4, 2, 64, 768, 512
EXPERTS_USED = 2
WORDS = 32000
# Widths are multiples of 256, the size of a block of Q4_K.
TYPES = ["F16", "Q8_0", "Q4_K"]
PROMPT, TOKENS = "Once upon a time", 24
# Largest difference of two log-probabilities in a near tie, and that of the back ends' for one token. The CPU rounds the
# inputs of Q4_K's products in blocks of 256, the GPU in blocks of 32; in 16-bit floats, they differ by 0.01 at most.
NEAR, CLOSE = 0.1, {"F16": 0.05, "Q8_0": 0.3, "Q4_K": 0.3}
SECONDS = 1200


def vocabulary():
    """Returns the tokens, their scores and types: three special ones, all bytes, and words of syllables."""
    tokens = [b"<unk>", b"<s>", b"</s>"] + [f"<0x{byte:02X}>".encode() for byte in range(256)]
    types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
    syllables = [c + v for c in "bcdfghjklmnprstvz" for v in "aeiou"]
    pieces = itertools.chain(
        (chr(c) for c in range(33, 127)),
        ["\u2581"],
        ("\u2581" + "".join(word) for length in (1, 2, 3) for word in itertools.product(syllables, repeat=length)),
    )
    words = list(itertools.islice(pieces, WORDS - len(tokens)))
    types += [gguf.TokenType.NORMAL] * len(words)
    scores = [0.0] * len(tokens) + [-float(rank) for rank in range(len(words))]
    return tokens + [word.encode() for word in words], scores, types


def write(name, path):
    """Writes a model of 16-bit floats. The seed is fixed, so the file is the same each time."""
    architecture, layers, experts, normalised = MODELS[name]
    random = numpy.random.default_rng(list(MODELS).index(name))
    model = gguf.GGUFWriter(path, architecture)
    model.add_name(f"random {name}")
    model.add_context_length(CONTEXT)
    model.add_embedding_length(WIDTH)
    model.add_block_count(layers)
    model.add_feed_forward_length(FEED_FORWARD)
    model.add_head_count(HEADS)
    model.add_head_count_kv(KEY_HEADS)
    model.add_key_length(HEAD)
    model.add_value_length(HEAD)
    model.add_rope_dimension_count(HEAD)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_vocab_size(WORDS)
    model.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    if experts:
        model.add_expert_count(experts)
        model.add_expert_used_count(EXPERTS_USED)
    tokens, scores, types = vocabulary()
    model.add_tokenizer_model("llama")
    model.add_token_list(tokens)
    model.add_token_scores(scores)
    model.add_token_types(types)
    model.add_bos_token_id(1)
    model.add_eos_token_id(2)
    model.add_unk_token_id(0)

    parameters = 0

    def tensor(name, *shape, kind=numpy.float16):
        """A matrix of normal numbers that keeps the size of its inputs, or a vector near 1."""
        nonlocal parameters
        numbers = random.standard_normal(shape, dtype=numpy.float32)
        numbers = 1 + numbers / 10 if len(shape) == 1 else numbers / shape[-1] ** 0.5
        parameters += numbers.size
        model.add_tensor(f"{name}.weight", numbers.astype(numpy.float32 if len(shape) == 1 else kind))

    tensor("token_embd", WORDS, WIDTH)
    tensor("output_norm", WIDTH)
    for layer in range(layers):
        block = f"blk.{layer}"
        tensor(f"{block}.attn_norm", WIDTH)
        tensor(f"{block}.attn_q", HEADS * HEAD, WIDTH)
        tensor(f"{block}.attn_k", KEY_HEADS * HEAD, WIDTH)
        tensor(f"{block}.attn_v", KEY_HEADS * HEAD, WIDTH)
        tensor(f"{block}.attn_output", WIDTH, HEADS * HEAD)
        if normalised:
            tensor(f"{block}.attn_q_norm", HEAD)
            tensor(f"{block}.attn_k_norm", HEAD)
        tensor(f"{block}.ffn_norm", WIDTH)
        if experts:
            tensor(f"{block}.ffn_gate_inp", experts, WIDTH, kind=numpy.float32)
            tensor(f"{block}.ffn_gate_exps", experts, FEED_FORWARD, WIDTH)
            tensor(f"{block}.ffn_up_exps", experts, FEED_FORWARD, WIDTH)
            tensor(f"{block}.ffn_down_exps", experts, WIDTH, FEED_FORWARD)
        else:
            tensor(f"{block}.ffn_gate", FEED_FORWARD, WIDTH)
            tensor(f"{block}.ffn_up", FEED_FORWARD, WIDTH)
            tensor(f"{block}.ffn_down", WIDTH, FEED_FORWARD)
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()
    print(f"{os.path.basename(path)}: {parameters / 1e6:.1f} million parameters")


class Server:
    """A llama-server with one model on one device."""

    def __init__(self, path, device):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        command = ["llama-server", "-m", path, "--device", device, "-ngl", "99", "-t", "1", "-tb", "1", "-np", "1"]
        command += ["--port", str(port), "--no-warmup", "--no-webui", "-c", str(CONTEXT), "-fit", "off"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                with urllib.request.urlopen(self.address + "/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"llama-server {device}: no answer, status {self.process.poll()}")
            time.sleep(0.2)

    def close(self):
        self.process.kill()
        self.process.wait()

    def ask(self, path, **request):
        data = json.dumps(request).encode()
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self.address + path, data, headers), timeout=SECONDS) as answer:
            return json.load(answer)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            user, system = file.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def decode(self, tokens, count):
        """Returns the next tokens after some: of each, the log-probabilities of the likeliest tokens, best first."""
        answer = self.ask("/completion", prompt=tokens, n_predict=count, temperature=0, n_probs=10, ignore_eos=True)
        return [{top["id"]: top["logprob"] for top in step["top_logprobs"]} for step in answer["completion_probabilities"]]


def compare(path):
    """Returns the counts of equal tokens, near ties, others; the largest difference; the GPU's tokens per second."""
    cpu, gpu = Server(path, "none"), Server(path, "ROCm0")
    try:
        prompt = cpu.ask("/tokenize", content=PROMPT, add_special=True)["tokens"]
        expected = cpu.decode(prompt, TOKENS)
        text = [max(step, key=step.get) for step in expected]
        same, ties, others, largest, done = 0, 0, 0, 0.0, 0
        while done < len(text):
            for step in gpu.decode(prompt + text[:done], len(text) - done):
                known = expected[done]
                common = step.keys() & known.keys()
                largest = max([largest] + [abs(step[token] - known[token]) for token in common])
                best, token = max(step, key=step.get), text[done]
                done += 1
                if best == token:
                    same += 1
                    continue
                near = {best, token} <= common and max(known[token] - known[best], step[best] - step[token]) < NEAR
                ties, others = ties + near, others + (not near)
                break
        # Everything is compiled now.
        before = gpu.cpu_seconds()
        gpu.decode(prompt, 1)
        middle = gpu.cpu_seconds()
        gpu.decode(prompt, 1 + TOKENS)
        after = gpu.cpu_seconds()
        return same, ties, others, largest, TOKENS / (after - middle - (middle - before))
    finally:
        cpu.close()
        gpu.close()


def main(arguments):
    names = [f"{model}-{kind}" for model in MODELS for kind in TYPES]
    if not arguments or any(name not in names for name in arguments[1:]):
        sys.exit(__doc__ + "\nModels: " + ", ".join(names))
    os.makedirs(arguments[0], exist_ok=True)
    failed, written = False, set()
    for name in arguments[1:] or names:
        model, kind = name.split("-")
        source = os.path.join(arguments[0], f"{model}-F16.gguf")
        path = os.path.join(arguments[0], f"{name}.gguf")
        if model not in written:
            write(model, source)
            written.add(model)
        if path != source:
            quantize = ["llama-quantize", "--pure", source, path, kind, "1"]
            subprocess.run(quantize, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        same, ties, others, largest, speed = compare(path)
        wrong = others > 0 or largest > CLOSE[kind]
        failed |= wrong
        print(
            f"  {name}({same} equal, {ties} near ties, {others} others, at most {largest:.4f}, "
            f"{speed:.1f} tokens/s): {'FAIL' if wrong else 'OK'}",
            flush=True,
        )
    sys.exit(failed)


if __name__ == "__main__":
    main(sys.argv[1:])
