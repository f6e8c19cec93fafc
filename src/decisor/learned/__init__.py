"""What is learned from data: features, fitting, saving and loading without pickle."""
