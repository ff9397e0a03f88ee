"""Data sets: load and split, then project."""


rule prepare_dataset:
    """Records from their source, split into roles."""
    input:
        own=own_files("prepare_dataset"),
    output:
        temp(paths.PREPARED),
    log:
        paths.log("prepare_dataset", "{dataset}"),
    benchmark:
        paths.benchmark("prepare_dataset", "{dataset}")
    group:
        "data"
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


rule project_pca:
    """Features scaled or projected: the data that every model trains on."""
    input:
        paths.PREPARED,
    output:
        paths.DATA,
    log:
        paths.log("project_pca", "{dataset}"),
    benchmark:
        paths.benchmark("project_pca", "{dataset}")
    group:
        "data"
    threads: 1
    resources:
        mem_mb=memory_of("project_pca"),
        runtime=minutes_of("project_pca"),
    params:
        settings=settings_of("project_pca"),
    message:
        "Project {wildcards.dataset} ({wildcards.study})"
    shell:
        "python -m dp_leakage.steps.project --settings {params.settings:q} --prepared {input:q} --data {output:q} 2> {log:q}"
