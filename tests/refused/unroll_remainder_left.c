/* expect:
FILE:8:18: unroll 4, noremainder: loop i runs 10 times, with a remainder of 2
    #pragma hmppcg unroll 4, noremainder
                   ^^^^^^^^^^^^^^^^^^^^^
*/
/* with: -D n=10 */
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg unroll 4, noremainder
  for (int i = 0; i < n; i++) B[i] = A[i];
}
