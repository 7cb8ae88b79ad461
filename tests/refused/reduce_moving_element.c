/* expect:
FILE:8:18: parallel is illegal: loop i carries the reduction + of s[i / 2], whose element is not the same in all iterations
    #pragma hmppcg parallel
                   ^^^^^^^^
  instead: `rfactor 4096` divides it among threads
*/
void f(int n, double A[n], double s[n]) {
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++) s[i / 2] += A[i];
}
