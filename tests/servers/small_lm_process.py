"""Runs llama.cpp's server on a model file until its input ends. Arguments: model file, its name, port, tokens of
context, longest reply in tokens, threads, and ``special`` where control tokens are to be written out."""

import sys


def main() -> None:
    import xllamacpp  # type: ignore[import-not-found,unused-ignore]

    path, name, *numbers, special = sys.argv[1:]
    port, context, most, threads = map(int, numbers)
    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias, params.port = path, {name}, port
    params.n_ctx, params.n_predict, params.n_parallel = context, most, 1
    params.warmup, params.verbosity, params.special = False, 1, special == "special"
    params.endpoint_slots = params.endpoint_metrics = True
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads, cpu.poll = threads, 0  # poll 0: no busy waiting, which is slow on shared cores
    server = xllamacpp.Server(params)  # ends with the object
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
