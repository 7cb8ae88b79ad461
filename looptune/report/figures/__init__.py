"""One figure a module. The only package that knows matplotlib."""
