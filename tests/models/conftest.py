"""One thread, as in every training process: two are slower as soon as a neighbor is busy."""

import torch

torch.set_num_threads(1)
