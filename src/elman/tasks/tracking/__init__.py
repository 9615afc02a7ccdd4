"""Trackers of experiments: TensorBoard, wandb, MLflow and trackio, as watchers of a training run."""
