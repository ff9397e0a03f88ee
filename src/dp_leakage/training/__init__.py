"""The trainer: `trainer.train` makes an ensemble, `settings.TrainingSettings` says how."""
