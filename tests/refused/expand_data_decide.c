/* expect:
FILE:8:18: expand t: t is read after loop i, and which iteration of loop i writes it last is not known: condition x[i] > 0 cannot be analysed
    #pragma hmppcg expand t
                   ^^^^^^^^
*/
void f(int n, int m, double A[n][m], double x[n], double y[m]) {
  double t = 0;
  #pragma hmppcg expand t
  for (int i = 0; i < n; i++)
    if (x[i] > 0)
      t = x[i];
  y[0] = t;
}
