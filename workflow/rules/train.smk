"""Target, shadow and reference models: one job trains all models of one cell as an ensemble.

A job finds the models that are there (`update`), and keeps those of its settings: all of them in a second attempt, the
first ones where only the number of repeats has changed.
"""

TRAIN = (
    "python -m dp_leakage.steps.train --settings {params.settings:q} --data {input.data:q} --models {output.models:q}"
    " --history {output.history:q} --timing {output.timing:q} --tuned {input.tuned:q} --own {input.own:q}"
    " 2> {log:q}"
)


rule tune:
    """Try learning rates for a cell, on validation records."""
    input:
        data=paths.DATA,
    output:
        update(paths.TUNED),
    log:
        paths.log("tune"),
    group:
        in_group(training_group)
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("tune"),
        runtime=minutes_of("tune"),
        gpu=GPUS,
    params:
        settings=settings_of("tune"),
    message:
        "Try learning rates for {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.tune --settings {params.settings:q} --data {input.data:q} --tuned {output:q}"
        " 2> {log:q}"


rule train_target:
    """Train the target models: all repeats of one cell."""
    input:
        data=paths.DATA,
        tuned=input_of("train_target", "tuned"),
        own=own_files("train_target"),
    output:
        models=update(paths.TRAINED),
        history=update(paths.HISTORY),
        timing=update(paths.TIMES),
    log:
        paths.log("train_target"),
    group:
        in_group(training_group)
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("train_target"),
        runtime=minutes_of("train_target"),
        gpu=GPUS,
    params:
        settings=settings_of("train_target"),
    message:
        "Train {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
    shell:
        TRAIN


rule train_auxiliary:
    """Train the attacker's own models, once for all cells."""
    input:
        data=paths.DATA,
        tuned=input_of("train_auxiliary", "tuned"),
        own=own_files("train_auxiliary"),
    output:
        models=update(paths.AUXILIARY),
        history=update(paths.AUXILIARY_HISTORY),
        timing=update(paths.AUXILIARY_TIMES),
    log:
        paths.log("train", "{dataset}/{model}/{role}"),
    group:
        "auxiliary"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("train_auxiliary"),
        runtime=minutes_of("train_auxiliary"),
        gpu=GPUS,
    params:
        settings=settings_of("train_auxiliary"),
    message:
        "Train {wildcards.role} models for {wildcards.model} on {wildcards.dataset}, shared by all cells"
    shell:
        TRAIN


rule time_training:
    """Time an epoch under every defense, with Opacus and with plain PyTorch, in turns in one process."""
    input:
        data=paths.DATA,
    output:
        update(paths.TIMED),
    log:
        paths.log("time_training", "{dataset}/{model}"),
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("time_training"),
        runtime=minutes_of("time_training"),
    params:
        settings=settings_of("time_training"),
    message:
        "Time an epoch of every defense of {wildcards.model} on {wildcards.dataset}"
    shell:
        "python -m dp_leakage.steps.time_training --settings {params.settings:q} --data {input.data:q} --timed {output:q}"
        " 2> {log:q}"


use rule train_auxiliary as train_auxiliary_same with:
    output:
        models=update(paths.of_one_defense(paths.AUXILIARY)),
        history=update(paths.of_one_defense(paths.AUXILIARY_HISTORY)),
        timing=update(paths.of_one_defense(paths.AUXILIARY_TIMES)),
    log:
        paths.log("train", "{dataset}/{model}/{defense}/{role}"),
    group:
        "cell"
    message:
        "Train {wildcards.role} models for {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
