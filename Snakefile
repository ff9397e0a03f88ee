"""What does a privacy budget buy in practice? Every study and every figure is a target: snakemake --list-target-rules"""

from dp_leakage.common.interrupts import end_quietly
from snakemake.utils import min_version
from snakemake_logger_plugin_dp_leakage import finish

end_quietly("Stopped. Run the same command again: what is finished stays.")
min_version("9.27")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/attack.smk"
include: "workflow/rules/figure.smk"


# This rule is here because an included file cannot say what a bare `snakemake` runs (9.27).
rule all:
    """The study `quickstart`: what a bare `snakemake` runs."""
    default_target: True
    input:
        lambda wildcards: [
            path
            for study in STUDIES.values()
            if study.target == "quickstart"
            for path in everything_of(study)
        ],


if workflow.is_main_process:
    or_stop(lambda: check_targets(TARGETS, workflow.rules, STUDIES))


onstart:
    gc.freeze()
    gc.enable()
    # Snakemake's default, at most 100 starts a second, sets a timer at each of them that wakes the scheduler every second
    # for the rest of the run: after 200 jobs a fifth of a core (measured, 9.27.1). No limit sets none.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None
        if config.get("preload", True) and not IN_CONDA:
            start()
    # A failed submission keeps what it finished (keep-incomplete), so nothing old may lie where something new is due:
    # Snakemake would take it for that. On a workstation each job clears its own files as it begins.
    if not workflow.local_exec:
        end_soon(workflow.scheduler._executor)
        if workflow.execution_settings.keep_incomplete:
            for job in workflow.dag.needrun_jobs():
                workflow.async_run(job.remove_existing_output())


onsuccess:
    finish(workflow.logger_manager)
    done = workflow.dag.needrun_jobs(exclude_finished=False)
    made = {str(path) for job in done for path in job.output}
    reported = [study for study in STUDIES.values() if str(study.report) in made]
    for study in reported:
        print("".join(f"{words}\n" for words in answers_of(study)), end="")
        print(f"Report: {study.report}")
    if reported:
        print(f"All studies: {or_stop(overview)}")


onerror:
    finish(workflow.logger_manager)
    print(
        "A job failed: its message is above and in its log under logs/. What is finished stays."
    )
