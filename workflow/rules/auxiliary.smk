"""The attacker's own models: queried once, and used for training attacks once."""


rule query:
    """Query a group of auxiliary models about the records, for all attacks: signals or class scores."""
    input:
        unpack(inputs_of("query")),
    output:
        update(paths.ANSWERS),
    log:
        paths.log("query_{answers}", "{dataset}/{model}/{group}"),
    wildcard_constraints:
        group="([^/]+/)?(shadow|reference)",
    group:
        in_group(query_group)
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("query"),
        runtime=minutes_of("query"),
        gpu=judging_gpus,
    params:
        settings=settings_of("query"),
    message:
        "Ask the models of {wildcards.model}/{wildcards.group} on {wildcards.dataset}: {wildcards.answers}"
    shell:
        "python -m dp_leakage.steps.query --settings {params.settings:q} --data {input.data:q} --models {input.models:q}"
        " --{wildcards.answers:q} {output:q} 2> {log:q}"


rule fit_attack:
    """Train an attack on shadow or reference models, once for all cells that share them."""
    input:
        unpack(inputs_of("fit_attack")),
    output:
        update(paths.FITTED),
    log:
        paths.log("fit_{attack}", "{dataset}/{model}/{role}"),
    group:
        FITTED
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
        update(paths.of_one_defense(paths.FITTED)),
    log:
        paths.log("fit_{attack}", "{dataset}/{model}/{defense}/{role}"),
    group:
        JUDGED
