/* expect:
FILE:9:3: setting p, which is a pointer or an array, is not accepted in a codelet: write its elements, p[…], instead
    p = &b[3];
    ^^^^^^^^^
  --kernel chooses one of its loop nests: f:10, f:11
*/
double b[9], *p;
void f(int n) {
  p = &b[3];
  for (int i = 0; i < n; i++) b[i] = p[i];
  for (int i = 0; i < n; i++) b[i] += 1;
}
