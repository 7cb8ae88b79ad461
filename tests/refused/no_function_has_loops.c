/* expect:
no codelet g in FILE: it has no function with loops
*/
/* with: --kernel g */
void f(double *x) {
  x[0] = 1;
}
