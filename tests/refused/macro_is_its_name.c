/* expect:
FILE:8:23: SIZE is defined as SIZE, which is neither a number nor a variable
    for (int i = 0; i < SIZE; i++) x[i] = 1;
                        ^^^^
*/
#define SIZE SIZE
void f(double *x) {
  for (int i = 0; i < SIZE; i++) x[i] = 1;
}
