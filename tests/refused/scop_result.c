/* expect:
FILE:11:10: s is computed in the scop and read after it: write it to an array element
    x[0] = s;
           ^
*/
void f(int n, double *x) {
  double s = 0;
#pragma scop
  for (int i = 0; i < n; i++) s += x[i];
#pragma endscop
  x[0] = s;
}
