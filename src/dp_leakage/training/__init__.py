"""Trainer: `trainer.train` trains an ensemble with the `settings.TrainingSettings`."""
