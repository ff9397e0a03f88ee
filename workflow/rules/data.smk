"""Data sets: load and split, learn features if the study asks for it, then project."""


rule prepare_dataset:
    """Load records from their source and split them into roles."""
    input:
        own=own_files("prepare_dataset"),
    output:
        temp(paths.PREPARED),
    log:
        paths.log("prepare_dataset", "{dataset}"),
    group:
        "data"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("prepare_dataset"),
        runtime=minutes_of("prepare_dataset"),
    params:
        settings=settings_of("prepare_dataset"),
    message:
        "Load and split {wildcards.dataset} ({wildcards.study})"
    shell:
        "python -m dp_leakage.steps.prepare --settings {params.settings:q} --own {input.own:q} --prepared {output:q} 2> {log:q}"


rule learn_features:
    """Train a feature network on public records."""
    input:
        own=own_files("learn_features"),
    output:
        update(paths.FEATURES),
    log:
        paths.log("learn_features", "{dataset}"),
    group:
        "data"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("learn_features"),
        runtime=minutes_of("learn_features"),
        gpu=GPUS,
    params:
        settings=settings_of("learn_features"),
    message:
        "Learn features for {wildcards.dataset} ({wildcards.study}) on public records"
    shell:
        "python -m dp_leakage.steps.learn_features --settings {params.settings:q} --own {input.own:q} --features {output:q} 2> {log:q}"


rule project_pca:
    """Scale or project features: the data of all trainings."""
    input:
        prepared=paths.PREPARED,
        features=input_of("project_pca", "features"),
    output:
        paths.DATA,
    log:
        paths.log("project_pca", "{dataset}"),
    group:
        "data"
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("project_pca"),
        runtime=minutes_of("project_pca"),
    params:
        settings=settings_of("project_pca"),
    message:
        "Project {wildcards.dataset} ({wildcards.study})"
    shell:
        "python -m dp_leakage.steps.project --settings {params.settings:q} --prepared {input.prepared:q}"
        " --features {input.features:q} --data {output:q} 2> {log:q}"
