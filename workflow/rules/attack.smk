"""Models are asked once; attacks judge by what they say; measures judge the attacks."""


rule query:
    """What a group of models says of the records, for all attacks: signals, or class scores."""
    input:
        unpack(query_inputs),
    output:
        "results/{study}/{dataset}/{model}/{group}/{answers}.npz",
    log:
        "logs/{study}/{dataset}/{model}/{group}/query_{answers}.log",
    benchmark:
        "results/{study}/benchmarks/query/{dataset}.{model}.{group}.{answers}.tsv"
    group:
        query_group
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=query_memory,
        runtime=query_time,
        gpu=gpus,
    params:
        settings=settings_of(
            lambda study, w: study.query_settings(*group_of(w), w.answers)
        ),
    message:
        "Ask the models of {wildcards.model}/{wildcards.group} on {wildcards.dataset}: {wildcards.answers}"
    shell:
        "python -m dp_leakage.steps.query --settings {params.settings:q} --data {input.data:q} --models {input.models:q}"
        " --{wildcards.answers:q} {output:q} 2> {log:q}"


rule fit_attack:
    """What an attack learns from shadow or reference models, once for all cells that share them."""
    input:
        unpack(fit_inputs),
    output:
        "results/{study}/{dataset}/{model}/{role}/{attack}.safetensors",
    log:
        "logs/{study}/{dataset}/{model}/{role}/fit_{attack}.log",
    benchmark:
        "results/{study}/benchmarks/fit_attack/{dataset}.{model}.{role}.{attack}.tsv"
    group:
        "auxiliary"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=job_memory,
        runtime=attack_time,
    params:
        settings=settings_of(
            lambda study, w: study.fit_settings(w.dataset, w.model, w.attack)
        ),
    message:
        "Fit attack {wildcards.attack} on the {wildcards.role} models of {wildcards.model} ({wildcards.dataset})"
    shell:
        "python -m dp_leakage.steps.fit_attack --settings {params.settings:q} --signals {input.signals:q}"
        " --class_scores {input.class_scores:q} --data {input.data:q} --fitted {output:q} 2> {log:q}"


use rule fit_attack as fit_attack_same with:
    output:
        "results/{study}/{dataset}/{model}/{defense}/{role}/{attack}.safetensors",
    log:
        "logs/{study}/{dataset}/{model}/{defense}/{role}/fit_{attack}.log",
    benchmark:
        "results/{study}/benchmarks/fit_attack/{dataset}.{model}.{defense}.{role}.{attack}.tsv"
    group:
        "cell"
    params:
        settings=settings_of(
            lambda study, w: study.fit_settings(
                w.dataset, w.model, w.attack, w.defense
            )
        ),


rule attack:
    """One attack on what the target models of one cell say: scores, nothing else."""
    input:
        unpack(attack_inputs),
    output:
        scores="results/{study}/{dataset}/{model}/{defense}/attack/{attack}.parquet",
    log:
        "logs/{study}/{dataset}/{model}/{defense}/attack_{attack}.log",
    benchmark:
        "results/{study}/benchmarks/attack/{dataset}.{model}.{defense}.{attack}.tsv"
    wildcard_constraints:
        attack=attacks_that(lambda entry: entry.reads != "models"),
    group:
        "cell"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=job_memory,
        runtime=attack_time,
    params:
        settings=settings_of(
            lambda study, w: study.attack_settings(cell_of(study, w), w.attack)
        ),
    message:
        "Attack {wildcards.model} on {wildcards.dataset} under {wildcards.defense}: {wildcards.attack}"
    shell:
        "python -m dp_leakage.steps.attack --settings {params.settings:q} --signals {input.signals:q}"
        " --class_scores {input.class_scores:q} --reference_signals {input.reference_signals:q}"
        " --reference_class_scores {input.reference_class_scores:q} --fitted {input.fitted:q} --data {input.data:q}"
        " --scores {output.scores:q} 2> {log:q}"


rule attack_models:
    """One attack that takes the target models of one cell themselves."""
    input:
        unpack(attack_inputs),
    output:
        scores="results/{study}/{dataset}/{model}/{defense}/attack/{attack}.parquet",
    log:
        "logs/{study}/{dataset}/{model}/{defense}/attack_{attack}.log",
    benchmark:
        "results/{study}/benchmarks/attack/{dataset}.{model}.{defense}.{attack}.tsv"
    wildcard_constraints:
        attack=attacks_that(
            lambda entry: entry.reads == "models" and entry.family not in PICTURING
        ),
    group:
        "cell"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=job_memory,
        runtime=attack_time,
    params:
        settings=settings_of(
            lambda study, w: study.attack_settings(cell_of(study, w), w.attack)
        ),
        images=lambda wildcards, output: output.get("images", []),
    message:
        "Attack {wildcards.model} on {wildcards.dataset} under {wildcards.defense}: {wildcards.attack}"
    shell:
        "python -m dp_leakage.steps.attack_models --settings {params.settings:q} --data {input.data:q}"
        " --target {input.target:q} --scores {output.scores:q} --images {params.images:q} 2> {log:q}"


use rule attack_models as reconstruct with:
    output:
        scores="results/{study}/{dataset}/{model}/{defense}/attack/{attack}.parquet",
        images="results/{study}/{dataset}/{model}/{defense}/attack/{attack}.npz",
    wildcard_constraints:
        attack=attacks_that(lambda entry: entry.family in PICTURING),


rule audit:
    """Models of a cell's own with canaries, and how well they are told apart."""
    input:
        data="results/{study}/{dataset}/data.npz",
    output:
        "results/{study}/{dataset}/{model}/{defense}/audit.parquet",
    log:
        "logs/{study}/{dataset}/{model}/{defense}/audit.log",
    benchmark:
        "results/{study}/benchmarks/audit/{dataset}.{model}.{defense}.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 3000 * attempt,
        runtime=lambda wildcards, attempt: 120 * attempt,
        gpu=gpus,
    params:
        settings=settings_of(lambda study, w: study.audit_settings(cell_of(study, w))),
    message:
        "Audit {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.audit --settings {params.settings:q} --data {input.data:q} --scores {output:q} 2> {log:q}"


rule measure_training:
    """Accuracy, what the defense costs of it, and the ε spent under every accountant."""
    input:
        training="results/{study}/{dataset}/{model}/{defense}/training.parquet",
        baseline="results/{study}/{dataset}/{model}/none/training.parquet",
    output:
        measured="results/{study}/{dataset}/{model}/{defense}/measured/training.parquet",
        curve="results/{study}/{dataset}/{model}/{defense}/measured/curve.parquet",
        proven="results/{study}/{dataset}/{model}/{defense}/measured/proven.parquet",
    log:
        "logs/{study}/{dataset}/{model}/{defense}/measure_training.log",
    benchmark:
        "results/{study}/benchmarks/measure_training/{dataset}.{model}.{defense}.tsv"
    group:
        "cell"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 1000 * attempt,
        runtime=lambda wildcards, attempt: 5 * attempt,
    params:
        settings=settings_of(
            lambda study, w: study.measure_training_settings(cell_of(study, w))
        ),
    message:
        "Measure accuracy and spent ε of {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.measure_training --settings {params.settings:q} --training {input.training:q}"
        " --baseline {input.baseline:q} --measured {output.measured:q} --curve {output.curve:q} --proven {output.proven:q} 2> {log:q}"


rule measure:
    """All metrics of a cell with their intervals."""
    input:
        cell_parts,
    output:
        "results/{study}/{dataset}/{model}/{defense}/metrics.parquet",
    log:
        "logs/{study}/{dataset}/{model}/{defense}/measure.log",
    benchmark:
        "results/{study}/benchmarks/measure/{dataset}.{model}.{defense}.tsv"
    group:
        "cell"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 1000 * attempt,
        runtime=lambda wildcards, attempt: 5 * attempt,
    params:
        settings=settings_of(lambda study, w: study.measure_settings(cell_of(study, w))),
    message:
        "Measure the attacks on {wildcards.model}, {wildcards.dataset}, {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.measure --settings {params.settings:q} --parts {input:q} --metrics {output:q} 2> {log:q}"
