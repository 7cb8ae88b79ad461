/* expect:
directives:1:9: distribute: statements of loop i also stand in a loop beside it
  loop i: distribute
          ^^^^^^^^^^
*/
/* with: `loop i: distribute` */
void f(int n, double x[n]) {
  #pragma hmppcg splitat 4
  for (int i = 1; i < n; i++)
    x[i] = x[i - 1];
}
