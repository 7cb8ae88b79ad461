/* expect:
directives:1:11: loop 1 has no piece 2: no distribute splits it
  loop 1.2: unroll 2
            ^^^^^^^^
*/
/* with: `loop 1.2: unroll 2` */
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg noParallel
  for (int i = 0; i < n; i++) B[i] = A[i];
}
