"""The graph between a model's file and the passes: loading and checking it, and the moves that rewrite it."""
