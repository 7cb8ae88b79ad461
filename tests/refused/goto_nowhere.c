/* expect:
FILE:8:47: goto out leads into a block, out of what is compiled, or to no label: write a loop or an if instead
    for (int i = 0; i < n; i++) { if (x[i] > 2) goto out; x[i] = 1; }
                                                ^^^^
*/
void f(int n, double *x) {
#pragma scop
  for (int i = 0; i < n; i++) { if (x[i] > 2) goto out; x[i] = 1; }
#pragma endscop
  x[0] = 2;
out:;
}
