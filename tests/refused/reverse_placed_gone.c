/* expect:
directives:1:9: noparallel: a directive before it left no loop 2
  loop 2: noParallel
          ^^^^^^^^^^
*/
/* with: `loop 2: noParallel` */
void f(int n, double x[n]) {
  #pragma hmppcg reverse
  for (int i = 1; i < n; i++)
    for (int j = i; j < i + 1; j++)
      x[j] = 1;
}
