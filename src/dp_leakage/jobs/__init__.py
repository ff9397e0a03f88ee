"""Jobs as forks of one process that has the imports, so that a small job costs its arithmetic and no start-up.

A local run starts the process (``start``), which ends with it (``server``). A step started as ``python -m
dp_leakage.steps.NAME`` hands its work to a fork of it (``handover``) and ends as that ends; Snakemake's benchmark files
follow the work (``benchmark``). Where no such process is, a step runs by itself.
"""

VARIABLE = "DP_LEAKAGE_JOBS"  # the environment's word for the folder with the server's socket
