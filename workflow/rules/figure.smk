"""One target per figure, one report and one target per study."""

import json


def answers_of(study):
    """The deciding sentence of each data set, as the page says it. Imported here, since it costs a second."""
    from dp_leakage.report import headlines

    return headlines(json.loads(study.claims.read_text(encoding="utf-8")))


def overview():
    """Writes the page of all studies that were run here. Imported here for the same reason."""
    from dp_leakage.steps.overview import write_overview

    return write_overview(Path(paths.ROOT))


for _study in STUDIES.values():
    for _figure in _study.spec["figures"]:

        rule:
            name:
                f"{_study.target}_{_figure}"
            input:
                metrics=lambda wildcards, study=_study, figure=_figure: or_stop(
                    lambda: study.figure_inputs(figure)
                ),
                published=[local(str(path)) for path in _study.published_file],
            output:
                **figure_outputs(_study, _figure),
            log:
                _study.log("figures", _figure),
            benchmark:
                _study.benchmark("figure", _figure)
            group:
                "figures"
            threads: 1
            resources:
                mem_mb=lambda wildcards, attempt: 2000 * attempt,
                runtime=lambda wildcards, attempt: 5 * attempt,
            params:
                settings=lambda wildcards, study=_study, figure=_figure: or_stop(
                    lambda: canonical(study.figure_settings(figure))
                ),
            message:
                f"Draw {_figure} of {_study.name}"
            shell:
                by_file(
                    "figure",
                    "--settings {params.settings:q} --metrics {input.metrics:q} --published {input.published:q}"
                    " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q}",
                )

    rule:
        name:
            f"{_study.target}_report"
        input:
            pictures=[
                path
                for figure in _study.spec["figures"]
                for path in _study.figure_files(figure).values()
            ],
            metrics=lambda wildcards, study=_study: or_stop(
                lambda: [
                    study.metrics(cell.dataset, cell.model, cell.defense)
                    for cell in study.cells.values()
                ]
            ),
            data=[_study.data(dataset) for dataset in _study.spec["datasets"]],
            scores=lambda wildcards, study=_study: or_stop(study.exposed_scores),
            compared=lambda wildcards, study=_study: or_stop(study.compared_signals),
            own=lambda wildcards, study=_study: given_by_user(study, Study.report_files),
        output:
            claims=_study.claims,
            page=report(
                _study.report,
                caption="../report/page.rst",
                category=as_label(_study.spec["title"]),
                labels={"figure": "the study's page"},
            ),
        log:
            _study.log("report"),
        group:
            "figures"
        threads: 1
        resources:
            mem_mb=lambda wildcards, attempt: 2000 * attempt,
            runtime=lambda wildcards, attempt: 5 * attempt,
        params:
            settings=lambda wildcards, study=_study: or_stop(
                lambda: canonical(study.report_settings())
            ),
        message:
            f"Write the report of {_study.name}"
        shell:
            by_file(
                "report",
                "--settings {params.settings:q} --metrics {input.metrics:q} --data {input.data:q} --scores {input.scores:q}"
                " --compared {input.compared:q} --figures {input.pictures:q} --own {input.own:q}"
                " --report {output.page:q} --claims {output.claims:q}",
            )

    if _study.audited:

        rule:
            name:
                f"{_study.target}_audit"
            input:
                [
                    _study.audit(cell.dataset, cell.model, cell.defense)
                    for cell in _study.cells.values()
                    if cell.audits
                ],

    if _study.releases:

        # It has no output: Snakemake removes the outputs of a job that it runs again, and a release is made once.
        rule:
            name:
                f"{_study.target}_release"
            input:
                lambda wildcards, study=_study: or_stop(lambda: study.before_release()),
            log:
                _study.log("release"),
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
                "python -m dp_leakage.release make {params.study:q} --scale {params.scale:q} --keep 2> {log:q}"

    rule:
        name:
            _study.target
        input:
            lambda wildcards, study=_study: or_stop(study.everything),

    rule:
        name:
            f"{_study.target}_verify"
        input:
            lambda wildcards, study=_study: or_stop(study.everything),
        log:
            _study.log("verify"),
        threads: 1
        resources:
            mem_mb=lambda wildcards, attempt: 2000 * attempt,
            runtime=lambda wildcards, attempt: 30 * attempt,
        message:
            f"Read every file of {_study.name} and compare it with its digest"
        shell:
            by_file("verify", "--settings '{{}}' --files {input:q}")

    # A docstring inside a loop is a constant; the list of targets reads these.
    for _name, _words in _study.target_descriptions().items():
        _rule = workflow.modifier.modify_rulename(_name)
        if workflow.is_rule(
            _rule
        ):  # a Snakefile that uses this one may leave rules out
            workflow.get_rule(_rule).docstring = _words
