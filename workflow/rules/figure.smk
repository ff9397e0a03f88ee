"""One target per figure, one report and one target per study."""

import json
import time

BEGAN = time.time()  # seconds


def answers_of(study):
    """Print each data set's answer, as on the page; in a reduced run after a warning.

    Imported here, since it costs a second.
    """
    from dp_leakage.report import headlines

    said = json.loads(study.path(paths.CLAIMS).read_text(encoding="utf-8"))
    return [*filter(None, [said["reduced"]]), *headlines(said)]


def made(path):
    """Return whether the run has written a file."""
    return path.is_file() and path.stat().st_mtime >= BEGAN


def verified():
    """Return the results of the jobs that verified a study, from the ends of their logs."""
    logs = {
        study.target: study.path(paths.log("verify", ".")) for study in STUDIES.values()
    }
    return [
        f"{study}: {log.read_text(encoding='utf-8').strip().partition(' ')[2]}"
        for study, log in logs.items()
        if made(log)
    ]


def noticed():
    """Return warnings in the run's logs about files whose edits rerun nothing, each once."""
    logs = [
        log
        for study in STUDIES.values()
        for log in study.path(paths.LOGS).rglob("*.log")
        if made(log)
    ]
    lines = [
        line
        for log in logs
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
    ]
    return dict.fromkeys(
        line[line.index("beware: ") :] for line in lines if " beware: " in line
    )


def overview():
    """Write the page of all studies that were run here. Imported here for the same reason."""
    from dp_leakage.steps.overview import write_overview

    return write_overview(Path(paths.ROOT))


for _study in STUDIES.values():
    for _figure in _study.spec["figures"]:

        rule:
            name:
                f"{_study.target}_{_figure}"
            input:
                metrics=lambda wildcards, study=_study, figure=_figure: or_stop(
                    lambda: plan.figure_inputs(study, figure)
                ),
                published=[local(str(path)) for path in plan.published_file(_study)],
            output:
                **figure_outputs(_study, _figure),
            log:
                _study.path(paths.log(_figure, "figures")),
            group:
                "figures"
            conda:
                JOBS
            threads: 1
            resources:
                mem_mb=lambda wildcards, attempt: 2000 * attempt,
                runtime=drawing_time(_study),
            params:
                settings=lambda wildcards, study=_study, figure=_figure: or_stop(
                    lambda: canonical(plan.figure_settings(study, figure))
                ),
            message:
                f"Draw {_figure} of {_study.name}"
            shell:
                by_file(
                    "figure",
                    "--settings {params.settings:q} --metrics {input.metrics:q} --published {input.published:q}"
                    " --figure {output:q}",
                )

    rule:
        name:
            f"{_study.target}_report"
        input:
            pictures=[
                path
                for figure in _study.spec["figures"]
                for path in paths.figure_files(_study, figure).values()
            ],
            metrics=lambda wildcards, study=_study: or_stop(
                lambda: [
                    study.path(paths.METRICS, cell) for cell in study.cells.values()
                ]
            ),
            histories=lambda wildcards, study=_study: or_stop(
                lambda: [
                    study.path(paths.HISTORY, cell) for cell in study.cells.values()
                ]
            ),
            data=[
                _study.path(paths.DATA, dataset=dataset)
                for dataset in _study.spec["datasets"]
            ],
            scores=lambda wildcards, study=_study: or_stop(
                lambda: plan.exposed_scores(study)
            ),
            compared=lambda wildcards, study=_study: or_stop(
                lambda: plan.compared_signals(study)
            ),
            own=lambda wildcards, study=_study: given_by_user(study, plan.report_files),
        output:
            claims=_study.path(paths.CLAIMS),
            page=report(
                _study.path(paths.REPORT),
                caption="../report/page.rst",
                category=as_label(_study.spec["title"]),
                labels={"figure": "the study's page"},
            ),
        log:
            _study.path(paths.log("report", ".")),
        group:
            "figures"
        conda:
            JOBS
        threads: 1
        resources:
            mem_mb=lambda wildcards, attempt: 2000 * attempt,
            runtime=drawing_time(_study),
        params:
            settings=lambda wildcards, study=_study: or_stop(
                lambda: canonical(plan.report_settings(study))
            ),
        message:
            f"Write the report of {_study.name}"
        shell:
            by_file(
                "report",
                "--settings {params.settings:q} --metrics {input.metrics:q} --histories {input.histories:q}"
                " --data {input.data:q} --scores {input.scores:q} --compared {input.compared:q} --figures {input.pictures:q} --own {input.own:q}"
                " --report {output.page:q} --claims {output.claims:q}",
            )

    if f"{_study.target}_audit" in _study.targets:

        rule:
            name:
                f"{_study.target}_audit"
            input:
                [
                    _study.path(paths.AUDIT, cell)
                    for cell in _study.cells.values()
                    if cell.audits
                ],

    if _study.releases:

        # No output: Snakemake removes the outputs of a job that it runs again, and a release is made once.
        rule:
            name:
                f"{_study.target}_release"
            input:
                lambda wildcards, study=_study: or_stop(
                    lambda: plan.before_release(study, config)
                ),
            log:
                _study.path(paths.log("release", ".")),
            conda:
                JOBS
            threads: 1
            resources:
                mem_mb=lambda wildcards, attempt: 4000 * attempt,
                runtime=lambda wildcards, attempt: 240 * attempt,
            params:
                study=_study.target,
                scale=config["scale"],
            message:
                f"Release the model of {_study.name}, or verify it if it is there"
            shell:
                "python -m dp_leakage release {params.study:q} --scale {params.scale:q} --keep 2> {log:q}"

    rule:
        name:
            _study.target
        input:
            lambda wildcards, study=_study: asked_by(study),

    rule:
        name:
            f"{_study.target}_verify"
        input:
            lambda wildcards, study=_study: or_stop(lambda: plan.everything(study)),
        log:
            _study.path(paths.log("verify", ".")),
        conda:
            JOBS
        threads: 1
        resources:
            mem_mb=lambda wildcards, attempt: 2000 * attempt,
            runtime=lambda wildcards, attempt: 30 * attempt,
        message:
            f"Read every file of {_study.name} and compare it with its digest"
        shell:
            by_file("verify", "--settings '{{}}' --files {input:q}")
