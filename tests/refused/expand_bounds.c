/* expect:
FILE:8:18: expand t: the values of loop i have no bounds that are sums of sizes
    #pragma hmppcg expand t
                   ^^^^^^^^
*/
void f(int m, int count[1], double y[m]) {
  double t;
  #pragma hmppcg expand t
  for (int i = 0; i < count[0]; i++) {
    t = y[0];
    y[0] = t * t;
  }
}
