/* expect:
directives:1:11: loop 1 has no piece 3: its pieces are 1.1, 1.2
  loop 1.3: unroll 2
            ^^^^^^^^
*/
/* with: `loop 1.3: unroll 2` */
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg distribute
  for (int i = 0; i < n; i++) {
    A[i] = 1;
    B[i] = 2;
  }
}
