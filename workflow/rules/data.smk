"""Data sets: load and split, then project."""


rule prepare_dataset:
    """Records from their source, split into roles.

    A file of the user's own is no input, since its name may hold what Snakemake takes for a wildcard: its content is in
    the settings, so that an edit counts and a new date does not.
    """
    output:
        temp("results/{study}/{dataset}/prepared.npz"),
    log:
        "logs/{study}/{dataset}/prepare_dataset.log",
    benchmark:
        "results/{study}/benchmarks/prepare_dataset/{dataset}.tsv"
    group:
        "data"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=lambda wildcards, attempt: 30 * attempt,
    params:
        settings=settings_of(lambda study, w: study.prepare_settings(w.dataset)),
    message:
        "Load and split {wildcards.dataset} ({wildcards.study})"
    shell:
        "python -m dp_leakage.steps.prepare --settings {params.settings:q} --prepared {output:q} 2> {log:q}"


rule project_pca:
    """Features scaled or projected: the data that every model trains on."""
    input:
        "results/{study}/{dataset}/prepared.npz",
    output:
        "results/{study}/{dataset}/data.npz",
    log:
        "logs/{study}/{dataset}/project_pca.log",
    benchmark:
        "results/{study}/benchmarks/project_pca/{dataset}.tsv"
    group:
        "data"
    conda:
        "../../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: 6000 * attempt,
        runtime=lambda wildcards, attempt: 30 * attempt,
    params:
        settings=settings_of(lambda study, w: study.project_settings(w.dataset)),
    message:
        "Project {wildcards.dataset} ({wildcards.study})"
    shell:
        "python -m dp_leakage.steps.project --settings {params.settings:q} --prepared {input:q} --data {output:q} 2> {log:q}"
