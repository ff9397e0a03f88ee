"""Target, shadow and reference models: one job trains all models of one cell as an ensemble."""

TRAIN = (
    "python -m dp_leakage.steps.train --settings {params.settings:q} --data {input.data:q} --models {output.models:q}"
    " --history {output.history:q} --timing {output.timing:q} --tuned {input.tuned:q} --own {input.own:q}"
    " 2> {log:q}"
)


rule tune:
    """Learning rates that are tried for a cell, on records set apart."""
    input:
        data=paths.DATA,
    output:
        paths.TUNED,
    log:
        paths.log("tune"),
    benchmark:
        paths.benchmark("tune")
    group:
        in_group(jobs.training_group)
    threads: 1
    resources:
        mem_mb=of_attempt(jobs.memory),
        runtime=of_attempt(jobs.tuning_time),
        gpu=gpus,
    params:
        settings=settings_of(
            lambda study, job: study.tune_settings(jobs.cell_of(study, job))
        ),
    message:
        "Try learning rates for {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.tune --settings {params.settings:q} --data {input.data:q} --tuned {output:q}"
        " 2> {log:q}"


rule train_target:
    """The models under attack: all repeats of one cell."""
    input:
        data=paths.DATA,
        tuned=of_job(jobs.tuned_inputs),
        own=own_files(jobs.training_files),
    output:
        models=paths.TRAINED,
        history=paths.HISTORY,
        timing=paths.TIMES,
    log:
        paths.log("train_target"),
    benchmark:
        paths.benchmark("train_target")
    group:
        in_group(jobs.training_group)
    threads: 1
    resources:
        mem_mb=of_attempt(jobs.memory),
        runtime=of_attempt(jobs.training_time),
        gpu=gpus,
    params:
        settings=settings_of(
            lambda study, job: study.train_settings(jobs.cell_of(study, job))
        ),
    message:
        "Train {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
    shell:
        TRAIN


rule train_auxiliary:
    """The attacker's own models, trained once for all cells."""
    input:
        data=paths.DATA,
        tuned=of_job(jobs.tuned_inputs),
        own=own_files(jobs.training_files),
    output:
        models=paths.AUXILIARY,
        history=paths.AUXILIARY_HISTORY,
        timing=paths.AUXILIARY_TIMES,
    log:
        paths.log("train", "{dataset}/{model}/{role}"),
    benchmark:
        paths.benchmark("train_auxiliary", "{dataset}.{model}.{role}")
    group:
        "auxiliary"
    threads: 1
    resources:
        mem_mb=of_attempt(jobs.memory),
        runtime=of_attempt(jobs.training_time),
        gpu=gpus,
    params:
        settings=settings_of(
            lambda study, job: study.auxiliary_settings(
                job["dataset"], job["model"], job["role"]
            )
        ),
    message:
        "Train {wildcards.role} models for {wildcards.model} on {wildcards.dataset}, shared by all cells"
    shell:
        TRAIN


rule time_training:
    """How long an epoch takes under every defense, beside Opacus and plain PyTorch, in turns in one process."""
    input:
        data=paths.DATA,
    output:
        paths.TIMED,
    log:
        paths.log("time_training", "{dataset}/{model}"),
    benchmark:
        paths.benchmark("time_training", "{dataset}.{model}")
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 6000 * attempt,
        runtime=lambda wildcards, attempt: 60 * attempt,
    params:
        settings=settings_of(
            lambda study, job: study.timing_settings(job["dataset"], job["model"])
        ),
    message:
        "Time an epoch of every defense of {wildcards.model} on {wildcards.dataset}"
    shell:
        "python -m dp_leakage.steps.time_training --settings {params.settings:q} --data {input.data:q} --timed {output:q}"
        " 2> {log:q}"


use rule train_auxiliary as train_auxiliary_same with:
    output:
        models=paths.of_one_defense(paths.AUXILIARY),
        history=paths.of_one_defense(paths.AUXILIARY_HISTORY),
        timing=paths.of_one_defense(paths.AUXILIARY_TIMES),
    log:
        paths.log("train", "{dataset}/{model}/{defense}/{role}"),
    benchmark:
        paths.benchmark("train_auxiliary", "{dataset}.{model}.{defense}.{role}")
    group:
        "cell"
    params:
        settings=settings_of(
            lambda study, job: study.auxiliary_settings(
                job["dataset"], job["model"], job["role"], job["defense"]
            )
        ),
    message:
        "Train {wildcards.role} models for {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
