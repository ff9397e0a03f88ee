"""Jobs run as forks of one process with the imports loaded, so that a small job has no start-up cost.

The first step of a run that is started as ``python -m dp_leakage.steps.NAME`` starts this server process (``server``),
which ends with the run. This and every other step hand their work to a fork of it (``handover``) and exit with the
fork's status. Without a server, a step does its work itself. ``remote`` is for runs that submit jobs.
"""

VARIABLE = "DP_LEAKAGE_JOBS"  # environment variable with the folder of the server's socket
RUN = "DP_LEAKAGE_RUN"  # environment variable with the process id of the run
STATE = "DP_LEAKAGE_STATE"  # environment variable with the state of the code that the run planned with (`server.state`)
CODE = "DP_LEAKAGE_CODE"  # environment variable with the file of what the run knows of the code (`fingerprint.keep_in`)
PLANNED = "DP_LEAKAGE_PLANNED"  # environment variable of a cluster's job: what its run planned (`remote`)

served = False  # whether this process is a fork of the server, which has found the package's code to be the run's
