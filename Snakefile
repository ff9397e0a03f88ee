"""What `snakemake` runs in a clone: workflow/Snakefile, where the Snakemake workflow catalog looks for it."""


include: "workflow/Snakefile"


# An included file cannot say what a bare `snakemake` runs (9.27).
workflow.default_target = "all"
