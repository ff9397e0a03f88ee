"""Jobs run as forks of one process with the imports loaded, so that a small job has no start-up cost.

A local run starts this server process (``server``), which ends with the run. A step started as ``python -m
dp_leakage.steps.NAME`` hands its work to a fork of the server (``handover``) and exits with the fork's status. Without
a server, a step does its work itself. ``remote`` is for runs that submit jobs.
"""

VARIABLE = "DP_LEAKAGE_JOBS"  # environment variable with the folder of the server's socket
RUN = "DP_LEAKAGE_RUN"  # environment variable with the process id of the run
CODE = "DP_LEAKAGE_CODE"  # environment variable with the file of what the run knows of the code (`fingerprint.keep_in`)
PLANNED = "DP_LEAKAGE_PLANNED"  # environment variable of a cluster's job: what its run planned (`remote.tell_planned`)

served = False  # whether this process is a fork of the server, which has found the package's code to be the run's
