/* expect:
FILE:8:5: switch is not accepted in a codelet: write if … else if … instead
      switch (x[i]) { case 0: x[i] = 1; }
      ^^^^^^
*/
void f(int n, int *x) {
  for (int i = 0; i < n; i++)
    switch (x[i]) { case 0: x[i] = 1; }
}
