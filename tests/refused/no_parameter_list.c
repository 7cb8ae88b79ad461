/* expect:
FILE:7:8: f has no parameter list: write it here, not in a typedef
  kernel f {
         ^
*/
typedef void kernel(int n, double *x);
kernel f {
  for (int i = 0; i < 8; i++) ;
}
