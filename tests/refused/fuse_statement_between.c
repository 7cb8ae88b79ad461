/* expect:
FILE:11:3: fuse is illegal: the statement of line 11 depends on a loop before it, and a loop after it depends on the statement
    s = s / n;
    ^^^^^^^^^
  10:3 must run before 11:3, and that before 12:3
*/
void f(int n, double A[n], double B[n]) {
  double s = 0;
  #pragma hmppcg fuse
  for (int i = 0; i < n; i++) s += A[i];
  s = s / n;
  for (int k = 0; k < n; k++) B[k] = A[k] - s;
}
