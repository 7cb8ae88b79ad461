/* expect:
FILE:7:22: #pragma does not begin its line: write it on a line of its own
    int k = 0; #pragma hmppcg parallel
                       ^^^^^^
*/
void f(int n, double *x) {
  int k = 0; #pragma hmppcg parallel
  for (int i = 0; i < n; i++) x[i] = 1;
}
