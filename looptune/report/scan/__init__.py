"""What ``looptune scan`` finds in a program: every loop nest, what is parallel in it, and why the rest is not."""
