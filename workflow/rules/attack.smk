"""Models are asked once; attacks judge by what they say; measures judge the attacks."""


rule query:
    """What a group of models says about the records, for all attacks: signals, or class scores."""
    input:
        unpack(inputs_of("query")),
    output:
        paths.ANSWERS,
    log:
        paths.log("query_{answers}", "{dataset}/{model}/{group}"),
    benchmark:
        paths.benchmark("query", "{dataset}.{model}.{group}.{answers}")
    group:
        in_group(query_group)
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("query"),
        runtime=minutes_of("query"),
        gpu=GPUS,
    params:
        settings=settings_of("query"),
    message:
        "Ask the models of {wildcards.model}/{wildcards.group} on {wildcards.dataset}: {wildcards.answers}"
    shell:
        "python -m dp_leakage.steps.query --settings {params.settings:q} --data {input.data:q} --models {input.models:q}"
        " --{wildcards.answers:q} {output:q} 2> {log:q}"


rule fit_attack:
    """What an attack learns from shadow or reference models, once for all cells that share them."""
    input:
        unpack(inputs_of("fit_attack")),
    output:
        paths.FITTED,
    log:
        paths.log("fit_{attack}", "{dataset}/{model}/{role}"),
    benchmark:
        paths.benchmark("fit_attack", "{dataset}.{model}.{role}.{attack}")
    group:
        "auxiliary"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("fit_attack"),
        runtime=minutes_of("fit_attack"),
    params:
        settings=settings_of("fit_attack"),
    message:
        "Fit attack {wildcards.attack} on the {wildcards.role} models of {wildcards.model} ({wildcards.dataset})"
    shell:
        "python -m dp_leakage.steps.fit_attack --settings {params.settings:q} --signals {input.signals:q}"
        " --class_scores {input.class_scores:q} --data {input.data:q} --fitted {output:q} 2> {log:q}"


use rule fit_attack as fit_attack_same with:
    output:
        paths.of_one_defense(paths.FITTED),
    log:
        paths.log("fit_{attack}", "{dataset}/{model}/{defense}/{role}"),
    benchmark:
        paths.benchmark("fit_attack", "{dataset}.{model}.{defense}.{role}.{attack}")
    group:
        "cell"


# An attack is measured in its own job. A job runs again where either changed, and keeps scores (`update`) whose stamp
# says that attack, settings and inputs are still these: a new measure attacks nothing.
rule attack:
    """One attack on what the target models of one cell say: scores, and what they reach, with intervals."""
    input:
        unpack(inputs_of("attack")),
    output:
        scores=update(paths.SCORES),
        rows=paths.ATTACKED,
    log:
        paths.log("attack_{attack}"),
    benchmark:
        paths.benchmark("attack", "{dataset}.{model}.{defense}.{attack}")
    wildcard_constraints:
        attack=attacks_that(lambda entry: entry.reads != "models"),
    group:
        "cell"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("attack"),
        runtime=minutes_of("attack"),
    params:
        settings=settings_of("attack"),
    message:
        "Attack {wildcards.model} on {wildcards.dataset} under {wildcards.defense}: {wildcards.attack}"
    shell:
        "python -m dp_leakage.steps.attack --settings {params.settings:q} --signals {input.signals:q}"
        " --class_scores {input.class_scores:q} --reference_signals {input.reference_signals:q}"
        " --reference_class_scores {input.reference_class_scores:q} --fitted {input.fitted:q} --data {input.data:q}"
        " --history {input.history:q} --scores {output.scores:q} --rows {output.rows:q} 2> {log:q}"


rule attack_models:
    """One attack that takes the target models of one cell themselves, and what it reaches."""
    input:
        unpack(inputs_of("attack")),
    output:
        scores=update(paths.SCORES),
        rows=paths.ATTACKED,
    log:
        paths.log("attack_{attack}"),
    benchmark:
        paths.benchmark("attack", "{dataset}.{model}.{defense}.{attack}")
    wildcard_constraints:
        attack=attacks_that(
            lambda entry: entry.reads == "models" and entry.family not in PICTURING
        ),
    group:
        "cell"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("attack"),
        runtime=minutes_of("attack"),
        gpu=lambda wildcards: GPUS if ATTACKS[wildcards.attack].on_device else 0,
    params:
        settings=settings_of("attack"),
        images=lambda wildcards, output: output.get("images", []),
    message:
        "Attack {wildcards.model} on {wildcards.dataset} under {wildcards.defense}: {wildcards.attack}"
    shell:
        "python -m dp_leakage.steps.attack_models --settings {params.settings:q} --data {input.data:q}"
        " --target {input.target:q} --scores {output.scores:q} --images {params.images:q} --rows {output.rows:q} 2> {log:q}"


use rule attack_models as reconstruct with:
    output:
        scores=update(paths.SCORES),
        images=update(paths.IMAGES),
        rows=paths.ATTACKED,
    wildcard_constraints:
        attack=attacks_that(lambda entry: entry.family in PICTURING),


rule audit:
    """Models of a cell that are trained with canaries, and the canaries' scores."""
    input:
        data=paths.DATA,
        tuned=input_of("audit", "tuned"),
    output:
        paths.AUDIT,
    log:
        paths.log("audit"),
    benchmark:
        paths.benchmark("audit")
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("audit"),
        runtime=minutes_of("audit"),
        gpu=GPUS,
    params:
        settings=settings_of("audit"),
    message:
        "Audit {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.audit --settings {params.settings:q} --data {input.data:q} --scores {output:q}"
        " --tuned {input.tuned:q} 2> {log:q}"


rule measure_audit:
    """The lower bounds on ε that a cell's canaries prove."""
    input:
        paths.AUDIT,
    output:
        paths.BOUNDS,
    log:
        paths.log("measure_audit"),
    benchmark:
        paths.benchmark("measure_audit")
    group:
        "cell"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("measure_audit"),
        runtime=minutes_of("measure_audit"),
    params:
        settings=settings_of("measure_audit"),
    message:
        "Compute what the audits of {wildcards.model} on {wildcards.dataset} under {wildcards.defense} prove"
    shell:
        "python -m dp_leakage.steps.measure_audit --settings {params.settings:q} --scores {input:q} --bounds {output:q}"
        " 2> {log:q}"


rule measure_training:
    """Accuracy, the accuracy that the defense costs, and the ε spent under every accountant."""
    input:
        training=paths.HISTORY,
        baseline=paths.HISTORY.replace("{defense}", "none"),
    output:
        measured=paths.MEASURED,
        curve=paths.CURVE,
        proven=paths.PROVEN,
    log:
        paths.log("measure_training"),
    benchmark:
        paths.benchmark("measure_training")
    group:
        "cell"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("measure_training"),
        runtime=minutes_of("measure_training"),
    params:
        settings=settings_of("measure_training"),
    message:
        "Measure accuracy and spent ε of {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.measure_training --settings {params.settings:q} --training {input.training:q}"
        " --baseline {input.baseline:q} --measured {output.measured:q} --curve {output.curve:q} --proven {output.proven:q} 2> {log:q}"


rule measure_together:
    """What several membership attacks on a cell reach together, with intervals."""
    input:
        unpack(inputs_of("measure_together")),
    output:
        paths.ROWS,
    log:
        paths.log("measure_{part}"),
    benchmark:
        paths.benchmark("measure_together", "{dataset}.{model}.{defense}.{part}")
    group:
        "cell"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("measure_together"),
        runtime=minutes_of("measure_together"),
    params:
        settings=settings_of("measure_together"),
    message:
        "Measure what {wildcards.part} finds in {wildcards.model}, {wildcards.dataset}, {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.measure_attack --settings {params.settings:q} --found {input.found:q}"
        " --data {input.data:q} --signals {input.signals:q} --references {input.references:q} --rows {output:q} 2> {log:q}"


rule measure_coins:
    """The lower bounds on ε that guesses of a cell's coins prove."""
    input:
        signals=paths.ANSWERS.replace("{group}/{answers}", f"{{defense}}/{SIGNALS}"),
        training=paths.HISTORY,
    output:
        paths.COINS,
    log:
        paths.log("measure_coins"),
    benchmark:
        paths.benchmark("measure_coins")
    group:
        "cell"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("measure_coins"),
        runtime=minutes_of("measure_coins"),
    params:
        settings=settings_of("measure_coins"),
    message:
        "Compute what coins prove of {wildcards.model}, {wildcards.dataset}, {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.measure_coins --settings {params.settings:q} --signals {input.signals:q}"
        " --training {input.training:q} --rows {output:q} 2> {log:q}"


rule measure_structure:
    """What the structure of a cell's models gives away without any attack."""
    input:
        models=paths.TRAINED,
        data=paths.DATA,
    output:
        paths.STRUCTURE,
    log:
        paths.log("measure_structure"),
    benchmark:
        paths.benchmark("measure_structure")
    group:
        "cell"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("measure_structure"),
        runtime=minutes_of("measure_structure"),
    params:
        settings=settings_of("measure_structure"),
    message:
        "Check the structure of {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.measure_structure --settings {params.settings:q} --models {input.models:q}"
        " --data {input.data:q} --rows {output:q} 2> {log:q}"


rule measure_groups:
    """What the membership attacks on a cell find in each group of its records."""
    input:
        data=paths.DATA,
        found=input_of("measure_groups", "found"),
    output:
        paths.GROUPS,
    log:
        paths.log("measure_groups"),
    benchmark:
        paths.benchmark("measure_groups")
    group:
        "cell"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("measure_groups"),
        runtime=minutes_of("measure_groups"),
    params:
        settings=settings_of("measure_groups"),
    message:
        "Measure what leaks by group in {wildcards.model}, {wildcards.dataset}, {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.measure_groups --settings {params.settings:q} --found {input.found:q}"
        " --data {input.data:q} --rows {output:q} 2> {log:q}"


rule measure:
    """All metrics of a cell with their intervals."""
    input:
        input_of("measure", "parts"),
    output:
        paths.METRICS,
    log:
        paths.log("measure"),
    benchmark:
        paths.benchmark("measure")
    group:
        "cell"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("measure"),
        runtime=minutes_of("measure"),
    params:
        settings=settings_of("measure"),
    message:
        "Join what was measured of {wildcards.model}, {wildcards.dataset}, {wildcards.defense}"
    shell:
        "python -m dp_leakage.steps.measure --settings {params.settings:q} --parts {input:q} --metrics {output:q} 2> {log:q}"
