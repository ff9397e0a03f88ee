"""Judgment of each trained cell in one job: query the models, attack, measure and join.

A job keeps what is there and current (`update`), so that a new attack or an edited setting makes only its own files.
What takes long and few figures draw is in jobs of its own: `reconstruct` and `audit`. Where a cell has one of
these, `measure` joins its parts.
"""

JUDGE = by_file("judge", "--settings {params.settings:q} --outputs {output:q}")


for _study in STUDIES.values():
    for _name, _files, _cells in or_stop(lambda: shapes(_study)):

        rule:
            name:
                _name
            input:
                unpack(inputs_of("judge")),
            output:
                [update(f"{paths.CELL}/{_file}") for _file in _files],
            log:
                paths.log("judge"),
            wildcard_constraints:
                study=_cells,
            group:
                JUDGED
            conda:
                JOBS
            threads: 1
            resources:
                mem_mb=memory_of("judge"),
                runtime=minutes_of("judge"),
                gpu=judging_gpus,
            params:
                settings=settings_of("judge"),
            message:
                "Judge {wildcards.model} on {wildcards.dataset} under {wildcards.defense}"
            shell:
                JUDGE


rule reconstruct:
    """Run one inversion attack on the target models of one cell: pictures and success."""
    input:
        unpack(inputs_of("reconstruct")),
    output:
        update(paths.SCORES),
        update(paths.IMAGES),
        update(paths.ATTACKED),
    log:
        paths.log("attack_{attack}"),
    wildcard_constraints:
        attack="|".join(filter(apart, ATTACKS)),
    group:
        in_group(lambda job: "cell" if ATTACKS[job.attack].on_device else JUDGED)
    conda:
        JOBS
    threads: 1
    resources:
        mem_mb=memory_of("reconstruct"),
        runtime=minutes_of("reconstruct"),
        gpu=lambda wildcards: GPUS if ATTACKS[wildcards.attack].on_device else 0,
    params:
        settings=settings_of("reconstruct"),
    message:
        "Attack {wildcards.model} on {wildcards.dataset} under {wildcards.defense}: {wildcards.attack}"
    shell:
        JUDGE


rule audit:
    """Audit a cell: train models with canaries, score the canaries, compute lower bounds on ε."""
    input:
        unpack(inputs_of("audit")),
    output:
        update(paths.AUDIT),
        update(paths.BOUNDS),
    log:
        paths.log("audit"),
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
        JUDGE


rule measure:
    """Join all metrics of a cell if some come from jobs of their own."""
    input:
        unpack(inputs_of("measure")),
    output:
        update(paths.METRICS),
    log:
        paths.log("measure"),
    wildcard_constraints:
        study=joined_apart(STUDIES.values()),
    group:
        JUDGED
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
        JUDGE
