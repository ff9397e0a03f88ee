"""One module per file format; each defines ``load(spec, data_dir) -> Raw``."""
