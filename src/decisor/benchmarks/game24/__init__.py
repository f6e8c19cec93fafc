"""Game of 24: four numbers, three steps, 24 left. Exact fractions."""
