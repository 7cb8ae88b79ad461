"""The loop IR, and what can be done to any tree: rewriting, simplification, interpretation, printing as C."""
