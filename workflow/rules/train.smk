"""Target, shadow and reference models: one job trains all models of one cell as an ensemble."""

TRAIN = (
    "python -m dp_leakage.steps.train --settings {params.settings:q} --data {input.data:q} --models {output.models:q}"
    " --history {output.history:q} --timing {output.timing:q} 2> {log:q}"
)


rule train_target:
    """The models under attack: all repeats of one cell."""
    input:
        data="results/{study}/{dataset}/data.npz",
    output:
        models="results/{study}/{dataset}/{model}/{defense}/target.safetensors",
        history="results/{study}/{dataset}/{model}/{defense}/training.parquet",
        timing="results/{study}/{dataset}/{model}/{defense}/timing.json",
    log:
        "logs/{study}/{dataset}/{model}/{defense}/train_target.log",
    benchmark:
        "results/{study}/benchmarks/train_target/{dataset}.{model}.{defense}.tsv"
    group:
        training_group
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=job_memory,
        runtime=training_time,
        gpu=gpus,
    params:
        settings=settings_of(lambda study, w: study.train_settings(cell_of(study, w))),
    message:
        "Train {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
    shell:
        TRAIN


rule train_auxiliary:
    """The attacker's own models, trained once for all cells."""
    input:
        data="results/{study}/{dataset}/data.npz",
    output:
        models="results/{study}/{dataset}/{model}/{role}/models.safetensors",
        history="results/{study}/{dataset}/{model}/{role}/training.parquet",
        timing="results/{study}/{dataset}/{model}/{role}/timing.json",
    log:
        "logs/{study}/{dataset}/{model}/{role}/train.log",
    benchmark:
        "results/{study}/benchmarks/train_auxiliary/{dataset}.{model}.{role}.tsv"
    group:
        "auxiliary"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=job_memory,
        runtime=training_time,
        gpu=gpus,
    params:
        settings=settings_of(
            lambda study, w: study.auxiliary_settings(w.dataset, w.model, w.role)
        ),
    message:
        "Train {wildcards.role} models for {wildcards.model} on {wildcards.dataset}, shared by all cells"
    shell:
        TRAIN


rule time_training:
    """How long an epoch takes under every defense, beside Opacus and plain PyTorch, in turns in one process."""
    input:
        data="results/{study}/{dataset}/data.npz",
    output:
        "results/{study}/{dataset}/{model}/timed.parquet",
    log:
        "logs/{study}/{dataset}/{model}/time_training.log",
    benchmark:
        "results/{study}/benchmarks/time_training/{dataset}.{model}.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 6000 * attempt,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        settings=settings_of(lambda study, w: study.timing_settings(w.dataset, w.model)),
    message:
        "Time an epoch of every defense of {wildcards.model} on {wildcards.dataset}"
    shell:
        "python -m dp_leakage.steps.time_training --settings {params.settings:q} --data {input.data:q} --timed {output:q}"
        " 2> {log:q}"


use rule train_auxiliary as train_auxiliary_same with:
    output:
        models="results/{study}/{dataset}/{model}/{defense}/{role}/models.safetensors",
        history="results/{study}/{dataset}/{model}/{defense}/{role}/training.parquet",
        timing="results/{study}/{dataset}/{model}/{defense}/{role}/timing.json",
    log:
        "logs/{study}/{dataset}/{model}/{defense}/{role}/train.log",
    benchmark:
        "results/{study}/benchmarks/train_auxiliary/{dataset}.{model}.{defense}.{role}.tsv"
    group:
        "cell"
    params:
        settings=settings_of(
            lambda study, w: study.auxiliary_settings(
                w.dataset, w.model, w.role, w.defense
            )
        ),
    message:
        "Train {wildcards.role} models for {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
