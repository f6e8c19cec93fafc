"""What the words of a question mean in these data: metrics, calendars, entities, values, readings, examples."""
