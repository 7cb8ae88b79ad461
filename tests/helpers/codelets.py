"""Small codelets that many tests use."""

from __future__ import annotations

STEPS = """
void steps(int t, int n, float x[n], float y[n]) {
  for (int k = 0; k < t; k++) {
    for (int i = 1; i < n; i++) y[i] = x[i - 1] + k;
    for (int i = 0; i < n - k; i++) x[i] = 0.5f * y[i];
  }
}
"""
